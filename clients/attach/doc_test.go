package attach_test

import (
	"os"
	"strings"
	"testing"
)

// The example in docs/protocol.md is the one that is tested here.
func TestProtocolDocumentHasTheExample(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, code, _ := strings.Cut(read("example_test.go"), "func Example() {\n")
	code, _, _ = strings.Cut(code, "\t// Output:\n")
	doc := read("../../docs/protocol.md")
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "stop()") || strings.Contains(line, "loseLinkOnce") || strings.Contains(line, "startBroker") {
			continue // what only the test needs
		}
		if !strings.Contains(doc, strings.ReplaceAll(line, "Dial(address,", `Dial("",`)) {
			t.Errorf("docs/protocol.md has no line %q", line)
		}
	}
}
