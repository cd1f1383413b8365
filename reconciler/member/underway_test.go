package member

import "testing"

// What a watch begins once it was ended, ends at once.
func TestEndedWatchBeginsNothing(t *testing.T) {
	var u underway
	var ended []string
	u.is(func() { ended = append(ended, "list") })
	u.end()
	u.is(func() { ended = append(ended, "watch") })
	if !u.over() || len(ended) != 2 {
		t.Errorf("over: %v, ended: %v", u.over(), ended)
	}
}

// A watch that waits until changes may be told of goes on then, once, or when all
// is to end; and one that comes later does not wait.
func TestWatchWaitsUntilItMayBegin(t *testing.T) {
	for name, let := range map[string]func(*underway){"begin": (*underway).begin, "end": (*underway).end} {
		var u underway
		on := make(chan bool, 2)
		if !u.waits(func() { on <- true }) {
			t.Errorf("%s: it does not wait", name)
		}
		if len(on) > 0 {
			t.Errorf("%s: it goes on before", name)
		}
		let(&u)
		<-on
		let(&u)
		if u.waits(func() {}) || len(on) > 0 {
			t.Errorf("%s: it waits again, or goes on twice", name)
		}
	}
}
