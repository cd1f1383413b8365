package output

import (
	"testing"
)

// A screen is replaced line by line, and never scrolls.
func TestAScreenfulFits(t *testing.T) {
	lines := []string{"one", "two", "three", "four"}
	for name, test := range map[string]struct {
		p    Page
		want string
	}{
		"room enough": {Page{Width: 20, Height: 9}, "\033[Hone\033[K\r\ntwo\033[K\r\nthree\033[K\r\nfour\033[K\r\n\033[J"},
		"too low":     {Page{Width: 20, Height: 4}, "\033[Hone\033[K\r\ntwo\033[K\r\n… 2 more lines; make the window higher\033[K\r\n\033[J"},
		"hardly any":  {Page{Width: 20, Height: 1}, "\033[H… 5 more lines; make the window higher\033[K\r\n\033[J"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Screenful(test.p, lines, nil); got != test.want {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
	if lines[2] != "three" {
		t.Error("it changes what it was given")
	}
}
