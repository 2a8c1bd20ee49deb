package conv

// RefusedError is an error that another side gave: its text, and the error of the vocabulary that
// it stands for (nil: none of them).
type RefusedError struct {
	Kind error
	Text string
}

// Error returns the text.
func (r *RefusedError) Error() string { return r.Text }

// Unwrap returns the error of the vocabulary.
func (r *RefusedError) Unwrap() error { return r.Kind }
