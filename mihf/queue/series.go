package queue

import "mihf.dev/mihf"

// maxSeries bounds the series whose newest item is remembered.
const maxSeries = 1 << 14

// key is the identity of what a newer item replaces.
type key struct {
	link  mihf.LinkID
	kind  mihf.Kind
	param mihf.Parameter
	name  string // sensor or flow
}

func keyOf(e *mihf.Event) key {
	k := key{link: e.Link, kind: e.Kind}
	switch e.Kind {
	case mihf.LinkParametersReport:
		k.param = e.Report.Parameter
	case mihf.SensorConditionChanged:
		if e.Condition != nil {
			k.name = e.Condition.Sensor
		}
	case mihf.ShareReport:
		if e.ShareReport != nil {
			k.name = string(e.ShareReport.Flow)
		}
	default:
	}
	return k
}

// series is one key's newest item, in the table's list.
type series struct {
	key          key
	newest       mihf.Event
	older, newer *series
}

// table holds the series by key, and in a list by the sequence of their newest item.
type table struct {
	max   int
	byKey map[key]*series
	ends  *series // not a series: newer is the oldest one, older is the newest one
}

func newTable(limit int) table {
	t := table{max: limit, byKey: map[key]*series{}, ends: &series{}}
	t.ends.older, t.ends.newer = t.ends, t.ends
	return t
}

// remember makes e the newest of its series, which it returns.
func (t *table) remember(e *mihf.Event) *series {
	k := keyOf(e)
	s := t.byKey[k]
	if s == nil {
		if len(t.byKey) >= t.max {
			oldest := t.ends.newer
			oldest.unlink()
			delete(t.byKey, oldest.key)
		}
		s = &series{key: k}
		t.byKey[k] = s
	} else {
		s.unlink()
	}
	s.newest = *e
	s.older, s.newer = t.ends.older, t.ends
	s.older.newer, s.newer.older = s, s
	return s
}

func (s *series) unlink() {
	s.older.newer, s.newer.older = s.newer, s.older
}
