package history

import "testing"

// Entries that are restored are read where their time belongs, and none is dropped although they are more than the queue holds.
func TestRestoredEntriesAreInTheirPlace(t *testing.T) {
	const most = maxWaiting + 10
	r := open(t, t.TempDir(), 1<<30)
	newer := numbered(most, most+3)
	r.Add(newer...)
	if err := r.Restore(t.Context(), numbered(0, most)); err != nil {
		t.Fatal(err)
	}
	r.end()
	all := entriesOf(t, r.Record, Filter{})
	if len(all) != most+3 {
		t.Fatalf("%d entries, want %d", len(all), most+3)
	}
	for i, want := range numbered(0, most+3) {
		if all[i].Subject != want.Subject {
			t.Fatalf("entry %d is %s", i, all[i].Subject)
		}
	}
	for _, n := range []int{1, 2, most, most + 2} { // also some that were restored behind newer ones
		if got, want := subjects(entriesOf(t, r.Record, Filter{Newest: n})), subjects(all[len(all)-n:]); got != want {
			t.Errorf("the newest %d are %s, want %s", n, got, want)
		}
	}
	if got, want := subjects(entriesOf(t, r.Record, Filter{Newest: 4})), subjects(numbered(most-1, most+3)); got != want {
		t.Errorf("the newest are %s, want %s", got, want)
	}
}
