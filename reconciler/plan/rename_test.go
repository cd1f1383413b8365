package plan

import "testing"

// A rename is found in each plan until it is recorded in the ledger.
func TestARenameIsFoundUntilItIsWrittenDown(t *testing.T) {
	s := newScene(t)
	s.commit("v1", nil, []byte("clusters a\nnamespace web\nplace old of web\n"))
	s.do([]string{"seen", "a"})
	s.resolve()
	s.commit("v2", nil, []byte("clusters a\nnamespace web\nplace new of web\n"))
	first := describe(Resolve(s.in))
	again := Resolve(s.in)
	if len(again.Renames) != 1 || describe(again) != first {
		t.Errorf("at first:\n%s\nand then, with the renames %v:\n%s", first, again.Renames, describe(again))
	}
}
