package schema

import (
	"os"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// A manifest has a warning if an API server refuses it, and none if it accepts it.
func TestVerdictsOfAPIServers(t *testing.T) {
	data, err := os.ReadFile("testdata/apiserver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(data), "---\n")[1:] {
		title, manifest, _ := strings.Cut(strings.TrimPrefix(part, "# "), "\n")
		name, verdict, _ := strings.Cut(title, ": ")
		t.Run(name, func(t *testing.T) {
			r := &document.Report{}
			CheckBuiltin(r, nil, parse(t, manifest))
			if refused := len(r.Problems) > 0; refused != (verdict == "refused") {
				t.Errorf("an API server has it %s, and the warnings are %q", verdict, messages(r))
			}
		})
	}
}
