package grpcfront

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/pseudonym"
	mihv1 "mihf.dev/proto/mih/v1"
)

const ap = mihf.PoA("02:00:00:00:01:02")

// located is a broker that is at an access point, in each of its answers.
type located struct{ *fake }

func (located) status() mihf.LinkStatus { return mihf.LinkStatus{Link: "wifi-00000001", PoA: ap} }

func (b located) Snapshot(context.Context, mihf.Caller) (*mihf.Snapshot, error) {
	return &mihf.Snapshot{Boot: 1, Links: []mihf.LinkStatus{b.status()}}, nil
}

func (b located) Parameters(context.Context, mihf.Caller, mihf.LinkID) (mihf.LinkStatus, error) {
	return b.status(), nil
}

func (located) Information(_ context.Context, _ mihf.Caller, q mihf.InformationRequest) (*mihf.Information, error) {
	if len(q.PoAs) > 0 && q.PoAs[0] != ap {
		return &mihf.Information{}, nil
	}
	return &mihf.Information{PoAs: []mihf.PoAInformation{{PoA: ap}}}, nil
}

func (located) Explain(context.Context, mihf.Caller, mihf.PredictionID) (*mihf.Explanation, error) {
	return &mihf.Explanation{Samples: []mihf.Sample{{At: 1, PoA: ap}}}, nil
}

func (located) Record(ctx context.Context, _ mihf.Caller, write func(*mihf.Observation) error) (uint64, error) {
	err := write(&mihf.Observation{At: 1, Kind: mihf.ObsRadio, PoA: ap})
	<-ctx.Done()
	return 0, err
}

// told returns what a connection is told of the access point, by each way.
func told(t *testing.T, b located, conn *grpc.ClientConn, asked mihf.PoA) map[string]string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, out := t.Context(), map[string]string{}
	events, command, admin := mihv1.NewEventServiceClient(conn), mihv1.NewCommandServiceClient(conn), mihv1.NewAdminServiceClient(conn)
	snapshot, err := events.GetSnapshot(ctx, &mihv1.GetSnapshotRequest{})
	must(err)
	out["GetSnapshot"] = snapshot.GetSnapshot().GetLinks()[0].GetPoa()
	parameters, err := command.GetParameters(ctx, &mihv1.GetParametersRequest{Link: "wifi-00000001"})
	must(err)
	out["GetParameters"] = parameters.GetStatus().GetPoa()
	explained, err := admin.Explain(ctx, &mihv1.ExplainRequest{PredictionId: "00000001-1"})
	must(err)
	out["Explain"] = explained.GetSamples()[0].GetPoa()
	info, err := mihv1.NewInformationServiceClient(conn).GetInformation(ctx, &mihv1.GetInformationRequest{Poas: []string{string(asked)}})
	must(err)
	for _, p := range info.GetPoas() {
		out["GetInformation"] = p.GetPoa()
	}
	record, err := admin.Record(ctx)
	must(err)
	observed, err := record.Recv()
	must(err)
	out["Record"] = observed.GetObservation().GetRadio().GetPoa()
	must(record.CloseSend())

	subscription, err := events.Subscribe(ctx, &mihv1.SubscribeRequest{})
	must(err)
	feed := <-b.opened
	lci := &mihf.LCI{PoA: ap}
	hint := mihf.Hint{Sequence: 8, Boot: 1, Kind: mihf.HintCharacteristics, Characteristics: lci}
	feed.items <- mihf.Delivery{Kind: mihf.DeliverSnapshot, Snapshot: &mihf.Snapshot{Boot: 1, Links: []mihf.LinkStatus{b.status()}}}
	feed.items <- mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Boot: 1, Sequence: 7, Kind: mihf.LinkUp, Up: &mihf.Up{PoA: ap}}}
	feed.items <- mihf.Delivery{Kind: mihf.DeliverHint, Hint: hint}
	for _, name := range []string{"snapshot", "event", "hint"} {
		p, err := subscription.Recv()
		must(err)
		switch name {
		case "snapshot":
			out[name] = p.GetSnapshot().GetLinks()[0].GetPoa()
		case "event":
			out[name] = p.GetEvent().GetLinkUp().GetPoa()
		case "hint":
			out[name] = p.GetHint().GetCharacteristics().GetLci().GetPoa()
		}
	}
	attached, err := mihv1.NewTransportServiceClient(conn).Attach(ctx)
	must(err)
	(<-b.opened).items <- mihf.Delivery{Kind: mihf.DeliverHint, Hint: hint}
	p, err := attached.Recv()
	must(err)
	out["attached"] = p.GetHint().GetCharacteristics().GetLci().GetPoa()
	return out
}

// "Over TCP ids of points of attachment are what Options.Hidden makes of them", in every answer,
// and are asked for as that; over the unix socket of the same server they are as they are.
func TestPoAsAreHiddenOverTCP(t *testing.T) {
	ca, key := newAuthority(t), &pseudonym.Key{7}
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := located{newFake()}
	_, path, _ := serve(t, b, Options{
		Listeners: []net.Listener{ln}, Encoded: encoded.New(b.Node(), b.Now), Hidden: encoded.Hidden(b.Node(), b.Now, key),
		TLS: &tls.Config{
			Certificates: []tls.Certificate{ca.keyPair(t, "broker")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool, MinVersion: tls.VersionTLS13,
		},
	})
	remote, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: ca.pool, Certificates: []tls.Certificate{ca.keyPair(t, "client")}, MinVersion: tls.VersionTLS13,
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remote.Close() })
	for name, x := range map[string]struct {
		conn *grpc.ClientConn
		want mihf.PoA
	}{"unix": {dial(t, path), ap}, "tcp": {remote, key.PoA(ap)}} {
		got := told(t, b, x.conn, x.want)
		for _, way := range []string{"GetSnapshot", "GetParameters", "Explain", "GetInformation", "Record", "snapshot", "event", "hint", "attached"} {
			if got[way] != string(x.want) {
				t.Errorf("%s, %s: %q, want %q", name, way, got[way], x.want)
			}
		}
	}
	_, err = mihv1.NewInformationServiceClient(remote).GetInformation(t.Context(), &mihv1.GetInformationRequest{Poas: []string{string(ap)}})
	wantCode(t, "an id itself over TCP", err, codes.InvalidArgument)
}
