package front

import (
	"errors"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
)

// Run tests a front.
func Run(t *testing.T, f Front) {
	t.Helper()
	for _, tc := range []struct {
		name   string
		adjust func(*broker.Config)
		test   func(*bed)
	}{
		{"SnapshotThenFollow", nil, testSnapshotThenFollow},
		{"Order", nil, testOrder},
		{"Filter", nil, testFilter},
		{"HintsOnly", nil, testHintsOnly},
		{"Resume", nil, testResume},
		{"Present", nil, testPresent},
		{"ResumeOtherRun", nil, testResumeOtherRun},
		{"ResumeTooFarBack", shortReplay, testResumeTooFarBack},
		{"SlowReader", shortReplay, testSlowReader},
		{"SameFieldByField", nil, testSameFieldByField},
		{"NotUTF8", nil, testNotUTF8},
		{"AbsentValues", nil, testAbsentValues},
		{"Thresholds", nil, testThresholds},
		{"ThresholdsRefused", nil, testThresholdsRefused},
		{"Parameters", nil, testParameters},
		{"Information", nil, testInformation},
		{"InformationRefused", nil, testInformationRefused},
		{"StatusAndExplain", nil, testStatusAndExplain},
		{"Record", nil, testRecord},
		{"Registration", nil, testRegistration},
		{"RegistrationRefused", nil, testRegistrationRefused},
		{"UnregisterOnClose", nil, testUnregisterOnClose},
		{"ComeBack", nil, testComeBack},
		{"FreezeAndLease", nil, testFreezeAndLease},
		{"LateRegistration", nil, testLateRegistration},
		{"LateFreeze", nil, testLateFreeze},
		{"Lapse", shortLeases, testLapse},
		{"EveryByte", anyNode, testEveryByte},
		{"RegisterWhileReading", nil, testRegisterWhileReading},
		{"OwnFlows", nil, testOwnFlows},
		{"Permission", nil, testRoles},
		{"BrokerEnds", nil, testBrokerEnds},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(newBed(t, f, tc.adjust)) })
	}
}

func shortReplay(c *broker.Config) { c.Replay, c.Reports = 512, 512 }

func wantErr(w *bed, what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: %v, want %v", what, err, want)
	}
	if err != nil && len(err.Error()) <= len(want.Error()) {
		w.Errorf("%s: %q does not say why", what, err)
	}
}

func wantClosed(w *bed, err error) {
	w.Helper()
	if !errors.Is(err, mihf.ErrClosed) {
		w.Errorf("%v, want %v", err, mihf.ErrClosed)
	}
}

// linkOf returns wlan in a snapshot.
func linkOf(w *bed, s *mihf.Snapshot) *mihf.LinkStatus {
	w.Helper()
	for i := range s.Links {
		if s.Links[i].Link == wlan {
			return &s.Links[i]
		}
	}
	w.Fatalf("%s is not in the snapshot", wlan)
	return nil
}
