package front

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// A flow is its owner's, and for nobody else to see.
func testOwnFlows(w *bed) {
	a, b := w.dial(w.T, alice), w.dial(w.T, bob)
	w.see(facts(true))
	at := w.attach(a)
	reg, err := at.Register(spec)
	w.must(err)
	if w.flow(b, reg.Flow) != nil {
		w.Error("another user sees the flow")
	}
	if w.flow(w.dial(w.T, admin), reg.Flow) == nil {
		w.Error("root does not see the flow")
	}
	foreign := spec
	foreign.Owner = mihf.Some(alice)
	other := w.attach(b)
	_, err = other.Register(foreign)
	wantErr(w, "a flow for another user", err, mihf.ErrPermission)
	wantErr(w, "another user's flow", other.Unregister(reg.Flow), mihf.ErrNotFound)
	_, err = w.attach(w.dial(w.T, gateway)).Register(foreign)
	w.must(err)
	r := w.follow(b, mihf.SubscribeRequest{Hints: true})
	r.snapshot()
	w.see(facts(false)) // freezes the flow
	w.hint(at, mihf.HintFreeze)
	w.mark(1)
	for d := r.next(); !isMark(d, 1); d = r.next() {
		if d.Kind == mihf.DeliverHint {
			w.Errorf("another user sees the hint %+v", d.Hint)
		}
	}
}

// requests are what a role is needed for. Each is made with the role and without it.
var requests = []struct {
	name string
	role access.Role
	ask  func(*bed, clients.Client) error
}{
	{"Follow", access.See, func(w *bed, c clients.Client) error {
		f, err := c.Follow(w.ctx, mihf.SubscribeRequest{})
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Next(make([]mihf.Delivery, 1)) // not every front has its answer before
		return err
	}},
	{"Snapshot", access.See, func(w *bed, c clients.Client) error { _, err := c.Snapshot(w.ctx); return err }},
	{"Parameters", access.See, func(w *bed, c clients.Client) error { _, err := c.Parameters(w.ctx, wlan); return err }},
	{"Status", access.See, func(w *bed, c clients.Client) error { _, err := c.Status(w.ctx); return err }},
	{"Information", access.See, func(w *bed, c clients.Client) error {
		_, err := c.Information(w.ctx, mihf.InformationRequest{})
		return err
	}},
	{"Explain", access.See, func(w *bed, c clients.Client) error {
		_, err := c.Explain(w.ctx, mihf.PredictionID{Boot: boot, N: 99})
		return ignore(err, mihf.ErrNotFound)
	}},
	{"Register", access.RegisterOwn, func(w *bed, c clients.Client) error { return registerFor(w, c, mihf.Opt[uint32]{}) }},
	{"Register for another", access.RegisterAny, func(w *bed, c clients.Client) error { return registerFor(w, c, mihf.Some(daemon)) }},
	{"ConfigureThresholds", access.Command, func(w *bed, c clients.Client) error {
		return c.ConfigureThresholds(w.ctx, wlan, []mihf.ThresholdConfig{{Parameter: mihf.ParamRSSI, Action: mihf.ThresholdCancel}})
	}},
	{"Record", access.Administer, func(w *bed, c clients.Client) error {
		var sensor sync.WaitGroup
		defer sensor.Wait()
		ctx, stop := context.WithCancel(w.ctx)
		defer stop()
		sensor.Go(func() { // again and again: a recorder cannot say when it is there
			for ctx.Err() == nil {
				w.see(rssi(-60))
				time.Sleep(time.Millisecond)
			}
		})
		enough := errors.New("enough")
		_, err := c.Record(ctx, func(*mihf.Observation) error { return enough })
		return ignore(err, enough)
	}},
}

func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// registerFor registers a flow for an owner, and ends its registration.
func registerFor(w *bed, c clients.Client, owner mihf.Opt[uint32]) error {
	at, err := c.Attach(w.ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	flow := spec
	flow.Owner = owner
	_, err = at.Register(flow)
	return err
}

// Each user may do what its roles allow. Everything else is refused, with whose role is
// missing, and which.
func testRoles(w *bed) {
	w.see(facts(true))
	refused := uint64(0)
	for _, uid := range UIDs() {
		c, roles := w.dial(w.T, uid), granted[uid]
		if roles.Has(access.RegisterAny) {
			roles |= access.Of(access.RegisterOwn)
		}
		for _, r := range requests {
			err := r.ask(w, c)
			if roles.Has(r.role) {
				if err != nil {
					w.Errorf("%s by %d, which has the role %v: %v", r.name, uid, r.role, err)
				}
				continue
			}
			refused++
			wantErr(w, fmt.Sprintf("%s by %d", r.name, uid), err, mihf.ErrPermission)
			if err != nil && (!strings.Contains(err.Error(), fmt.Sprint(uid)) || !strings.Contains(err.Error(), "lacks the role "+r.role.String()) && r.role != access.RegisterAny) {
				w.Errorf("%s by %d: %q does not say whose role is missing, and which", r.name, uid, err)
			}
		}
	}
	s, err := w.broker.Status(w.ctx, inside)
	w.must(err)
	if n := counter(&s, "mihf_broker_refused_requests_total"); n != refused {
		w.Errorf("%d refusals are counted, %d were made", n, refused)
	}
}
