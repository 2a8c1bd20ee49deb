package main

import (
	"os"
	"strings"
	"testing"
)

// Every experiment has its place in the manual, and the list a name only once.
func TestExperimentsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/mihsim.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, x := range experiments() {
		if seen[x.Name] || x.Short == "" || x.Runs <= 0 || x.Run == nil {
			t.Errorf("%+v", x)
		}
		seen[x.Name] = true
		if !strings.Contains(string(b), "`"+x.Name+"`") {
			t.Errorf("docs/mihsim.md doesn't describe %s", x.Name)
		}
	}
}
