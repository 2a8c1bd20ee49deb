package natsfront

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/pseudonym"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// "With Options.Events that hide points of attachment nothing that is published, answered or
// delivered has the id of one", and a question for one is by what hides it.
func TestPoAsAreHidden(t *testing.T) {
	const ap = mihf.PoA("02:00:00:00:01:02")
	host, port := place(t)
	outside(t, host, port)
	url := "nats://" + net.JoinHostPort(host, strconv.Itoa(port))
	key := &pseudonym.Key{7}
	var w *bed
	events := encoded.Hidden(node, func() mihf.Time { return w.broker.Now() }, key)
	w = newBed(t, Options{External: &External{Servers: []string{url}}, Identity: "root", Events: events})
	w.until("connected", func() bool { return w.front.Counts().Connected })
	c, err := nats.Connect(url)
	w.must(err)
	t.Cleanup(c.Close)
	all := w.subscribe(c, ">")

	answer := func(op, method, inbox string, q, p proto.Message) *nats.Msg {
		t.Helper()
		data, err := proto.Marshal(q)
		w.must(err)
		h := nats.Header{}
		for name, v := range map[string]string{natsproto.HeaderMethod: method, natsproto.HeaderDeliver: inbox, natsproto.HeaderSession: strings.TrimPrefix(inbox, "_INBOX.")} {
			if v != "" {
				h.Set(name, v)
			}
		}
		m := w.ask(c, op, h, data)
		if p != nil {
			w.must(proto.Unmarshal(w.good(m).Data, p))
		}
		return m
	}
	answer(natsproto.OpAdmin, "Record", "_INBOX.recording", &mihv1.RecordRequest{}, &mihv1.Done{})
	recording := w.subscribe(c, "_INBOX.recording")
	w.until("the recording has begun", func() bool {
		w.see(mihf.Observation{Kind: mihf.ObsScan})
		n, _, err := recording.Pending()
		w.must(err)
		return n > 0
	})
	w.see(facts(false))
	w.see(mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationAuthorised, PoA: ap}})
	w.see(facts(true))
	var snapshot mihv1.GetSnapshotResponse
	w.until("the link is up", func() bool {
		answer(natsproto.OpSnapshot, "", "", &mihv1.GetSnapshotRequest{}, &snapshot)
		links := snapshot.GetSnapshot().GetLinks()
		return len(links) == 1 && links[0].GetUp()
	})
	hidden := string(key.PoA(ap))
	if got := snapshot.GetSnapshot().GetLinks()[0].GetPoa(); got != hidden {
		t.Errorf("snapshot: %q", got)
	}
	var info mihv1.GetInformationResponse
	answer(natsproto.OpInfo, "", "", &mihv1.GetInformationRequest{Poas: []string{hidden}}, &info)
	if len(info.GetPoas()) != 1 || info.GetPoas()[0].GetPoa() != hidden {
		t.Errorf("information: %v", &info)
	}
	w.refused(answer(natsproto.OpInfo, "", "", &mihv1.GetInformationRequest{Poas: []string{"poa"}}, nil), mihf.ErrInvalid, "poa_ids")
	answer(natsproto.OpCommand, "GetParameters", "", &mihv1.GetParametersRequest{Link: string(wlan)}, &mihv1.GetParametersResponse{})
	answer(natsproto.OpResume, "", "_INBOX.past", &mihv1.SubscribeRequest{Present: true}, &mihv1.Done{})

	var with []string // that have the pseudonym in them
	for !slices.Contains(with, "_INBOX.past") || !slices.Contains(with, "_INBOX.recording") || !slices.Contains(with, natsproto.Event(node, wlan, mihf.LinkUp)) {
		m, err := all.NextMsgWithContext(w.ctx)
		if err != nil {
			t.Fatalf("%v; hidden in %v", err, with)
		}
		if strings.Contains(string(m.Data), string(ap)) {
			t.Errorf("%s has the id: %q", m.Subject, m.Data)
		}
		if strings.Contains(string(m.Data), hidden) {
			with = append(with, m.Subject)
		}
	}
}
