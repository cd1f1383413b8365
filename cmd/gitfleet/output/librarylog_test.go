package output

import (
	"bytes"
	"log"
	"testing"
)

// kustomize's log lines about variables, which may contain secret values, and about a flag that gitfleet does not have are not shown.
// Those of other libraries are.
func TestKustomizeDoesNotLog(t *testing.T) {
	var shown bytes.Buffer
	l := log.New(LibraryLog(&shown), "", log.LstdFlags|log.Lmsgprefix)
	l.Printf("well-defined vars that were never replaced: %s\n", "UNUSED")
	l.Printf("MakePrimitiveReplacer: bad replacement type=%T val=%v", map[string]string{}, map[string]string{"key": "hush"})
	l.Println("Warning: Sorting order is set both in 'kustomization.yaml' ('sortOptions') and in a CLI flag ('--reorder').")
	if shown.Len() > 0 {
		t.Errorf("shown: %s", &shown)
	}
	l.SetFlags(0)
	l.Print("http: TLS handshake error")
	if got, want := shown.String(), "http: TLS handshake error\n"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
}
