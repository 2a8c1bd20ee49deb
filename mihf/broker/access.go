package broker

import (
	"errors"
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/route"
)

// SetAccess puts another table in force for what is asked from now on. Subscriptions and
// attachments that are open stay; what a registration needs is looked up each time.
func (b *Broker) SetAccess(t *access.Table) { b.access.Store(t) }

// Public reports whether everybody has the role to see, whoever that is.
func (b *Broker) Public() bool { return b.access.Load().May(mihf.Caller{}, access.See) }

// Access returns the table in force.
func (b *Broker) Access() *access.Table { return b.access.Load() }

// audit is what was said of refusals; requests come from many goroutines.
type audit struct {
	mu sync.Mutex
	of access.Audit
}

// require refuses the operation unless the caller has the role.
func (b *Broker) require(operation string, who mihf.Caller, role access.Role) error {
	if err := b.access.Load().Require(who, role); err != nil {
		return b.refuse(operation, who, err)
	}
	return nil
}

// filter checks a subscription.
func (b *Broker) filter(operation string, who mihf.Caller, req *mihf.SubscribeRequest) (*route.Filter, error) {
	if err := b.require(operation, who, access.See); err != nil {
		return nil, err
	}
	f, err := route.NewFilter(req, who, b.access.Load())
	if err != nil {
		return nil, b.refuse(operation, who, err)
	}
	return f, nil
}

// refused counts a request that is refused with err.
func (b *Broker) refused(err error) error {
	b.counts.refused.Add(1)
	return err
}

// refuse counts a request that is refused with err. Where a role is missing, the audit has
// it.
func (b *Broker) refuse(operation string, who mihf.Caller, err error) error {
	denied, ok := errors.AsType[*access.DeniedError](err)
	if !ok {
		return b.refused(err)
	}
	b.audit.mu.Lock()
	line, suppressed := b.audit.of.Refuse(b.Now(), denied.Who)
	b.audit.mu.Unlock()
	if line {
		b.cfg.Logger.Warn("request refused", "audit", true, "front", who.Front, "identity", denied.Who.String(), "pid", who.PID,
			"operation", operation, "missing_role", denied.Role.String(), "suppressed", suppressed)
	}
	return b.refused(err)
}
