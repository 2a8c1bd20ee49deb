package predictors_test

import (
	"testing"

	"mihf.dev/predictors"
)

func TestFind(t *testing.T) {
	ms := predictors.Methods{{Name: "a"}, {Name: "b", Description: "second"}}
	m, err := ms.Find("b")
	if err != nil || m.Description != "second" {
		t.Errorf("Find(b) = %+v, %v", m, err)
	}
	_, err = ms.Find("c")
	if want := `predictor "c" is not known; give one of a, b`; err == nil || err.Error() != want {
		t.Errorf("Find(c): error %v, want %s", err, want)
	}
}
