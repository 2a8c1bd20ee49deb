package queue

// NewLogOf is NewLog with a bound on the series.
func NewLogOf(s Sizes, series int) *Log {
	l := NewLog(s)
	l.newest = newTable(series)
	return l
}

// Skipped returns of how many series older items are counted.
func (c *Cursor) Skipped() int { return len(c.skipped) }
