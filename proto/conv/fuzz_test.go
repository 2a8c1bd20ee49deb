package conv

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func seed(f *testing.F, ms ...proto.Message) {
	f.Helper()
	f.Add([]byte{})
	for _, m := range ms {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func wantInvalid(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, mihf.ErrInvalid) {
		t.Errorf("%v does not wrap ErrInvalid", err)
	}
}

// What a client sends is refused with a reason or taken; it never panics, and what was
// taken is encoded and taken again.
func FuzzAttachRequest(f *testing.F) {
	uid, local := uint32(7), ":443"
	seed(f,
		&mihv1.AttachRequest{RequestId: 1, Request: &mihv1.AttachRequest_Register{Register: &mihv1.FlowSpec{
			Flow: "F", OwnerUid: &uid, Tuples: []*mihv1.Endpoints{{Protocol: 6, Local: &local}}, Hints: []mihv1.HintKind{1, 2},
		}}},
		&mihv1.AttachRequest{Request: &mihv1.AttachRequest_Update{Update: &mihv1.FlowUpdate{Flow: "F"}}},
		&mihv1.AttachRequest{Request: &mihv1.AttachRequest_Ack{Ack: &mihv1.Ack{Flow: "F", Result: 1}}},
		&mihv1.AttachRequest{Request: &mihv1.AttachRequest_Unregister{Unregister: &mihv1.Unregister{Flow: "F"}}},
	)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.AttachRequest
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		spec, err := DecodeFlowSpec(p.GetRegister())
		wantInvalid(t, err)
		if err == nil {
			again, err := DecodeFlowSpec(EncodeFlowSpec(&spec))
			wantSame(t, spec, again, err)
		}
		_, err = DecodeFlowUpdate(p.GetUpdate())
		wantInvalid(t, err)
		_, err = DecodeAck(p.GetAck())
		wantInvalid(t, err)
		_, err = DecodeUnregister(p.GetUnregister())
		wantInvalid(t, err)
	})
}

func FuzzSubscribeRequest(f *testing.F) {
	seed(f, &mihv1.SubscribeRequest{AfterSequence: 1, BootId: "00000001", Links: []string{"wifi-00000001"}, Kinds: []mihv1.EventKind{1}})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.SubscribeRequest
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		_, err := DecodeSubscribe(&p)
		wantInvalid(t, err)
	})
}

func FuzzConfigureThresholds(f *testing.F) {
	seed(f, &mihv1.ConfigureThresholdsRequest{Link: "wifi-00000001", Items: []*mihv1.ThresholdConfig{
		{Parameter: 1, Threshold: &mihv1.Threshold{Value: -80, Direction: 2}, Hysteresis: 2},
	}})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.ConfigureThresholdsRequest
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		_, err := DecodeLink(p.GetLink())
		wantInvalid(t, err)
		_, err = DecodeThresholds(p.GetItems())
		wantInvalid(t, err)
	})
}

func FuzzGetInformationRequest(f *testing.F) {
	seed(f, &mihv1.GetInformationRequest{Links: []string{"wifi-00000001"}, Ssids: [][]byte{{0xff}, {}}, Poas: []string{"02:00:00:00:00:01"}})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.GetInformationRequest
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		q, err := DecodeInformationRequest(&p)
		wantInvalid(t, err)
		if err == nil {
			again, err := DecodeInformationRequest(EncodeInformationRequest(&q))
			wantSame(t, q, again, err)
		}
	})
}

func FuzzGetInformationResponse(f *testing.F) {
	enc := Encoder{Now: now}
	seed(f, enc.Information(&mihf.Information{At: now, PoAs: []mihf.PoAInformation{
		{PoA: "02:00:00:00:00:01", SSID: []byte{}, Readings: []mihf.Reading{{Value: -60, At: now}}, LCI: &mihf.LCI{}},
	}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.GetInformationResponse
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		_, err := Decoder{Now: now}.Information(&p)
		wantInvalid(t, err)
	})
}

// What a broker sends may be of another version or damaged.
func FuzzSubscribeResponse(f *testing.F) {
	enc := Encoder{Now: now}
	ev := mihf.Event{Boot: 1, Kind: mihf.LinkUp, At: now, Up: &mihf.Up{Facts: &mihf.LinkFacts{}}}
	hint := mihf.Hint{Boot: 1, Kind: mihf.HintFreeze, At: now}
	snap := mihf.Snapshot{Boot: 1, At: now, Links: []mihf.LinkStatus{{}}, Flows: []mihf.FlowStatus{{}}}
	seed(f,
		&mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Event{Event: enc.Event(&ev)}},
		&mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Hint{Hint: enc.Hint(&hint)}},
		&mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Snapshot{Snapshot: enc.Snapshot(&snap)}},
	)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.SubscribeResponse
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		dec := Decoder{Now: now, Held: Held(p.GetHeld())}
		_, err := dec.Event(p.GetEvent())
		wantInvalid(t, err)
		_, err = dec.Hint(p.GetHint())
		wantInvalid(t, err)
		_, err = dec.Snapshot(p.GetSnapshot())
		wantInvalid(t, err)
	})
}

func FuzzRecordResponse(f *testing.F) {
	obs := mihf.Observation{Kind: mihf.ObsPeer, Peer: &mihf.PeerRoute{}}
	seed(f, &mihv1.RecordResponse{Item: &mihv1.RecordResponse_Observation{Observation: Encoder{Now: now}.Observation(&obs)}})
	obs = mihf.Observation{Kind: mihf.ObsFlow, Flow: &mihf.FlowReading{RTT: mihf.Some(mihf.MaxFlowRTT), CwndBytes: mihf.Some[uint64](14600)}}
	seed(f, &mihv1.RecordResponse{Item: &mihv1.RecordResponse_Observation{Observation: Encoder{Now: now}.Observation(&obs)}})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.RecordResponse
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		_, err := Decoder{Now: now}.Observation(p.GetObservation())
		wantInvalid(t, err)
	})
}

func FuzzExplainResponse(f *testing.F) {
	p := mihf.Prediction{ID: mihf.PredictionID{Boot: 1, N: 1}}
	x := mihf.Explanation{Prediction: p, Announced: p, Samples: []mihf.Sample{{}}, Forecasts: []mihf.ForecastPoint{{}}}
	seed(f, Encoder{Now: now}.Explanation(&x))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p mihv1.ExplainResponse
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		_, err := Decoder{Now: now}.Explanation(&p)
		wantInvalid(t, err)
	})
}
