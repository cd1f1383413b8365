package output

import (
	"errors"
	"strings"
	"testing"
)

// A screen is replaced line by line, and never scrolls.
func TestAScreenIsReplaced(t *testing.T) {
	lines := []string{"one", "two", "three", "four"}
	for name, test := range map[string]struct {
		p    Page
		err  error
		want string
	}{
		"room enough": {Page{Width: 20, Height: 9}, nil, "\033[Hone\033[K\r\ntwo\033[K\r\nthree\033[K\r\nfour\033[K\r\n\033[J"},
		"too low":     {Page{Width: 20, Height: 4}, nil, "\033[Hone\033[K\r\ntwo\033[K\r\n… 2 more lines; make the window higher\033[K\r\n\033[J"},
		"hardly any":  {Page{Width: 20, Height: 1}, nil, "\033[H… 5 more lines; make the window higher\033[K\r\n\033[J"},
		"an error":    {Page{Width: 20, Height: 2}, errors.New("no\nanswer"), "\033[H… 5 more lines; make the window higher\033[K\r\n\033[J"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := terminal(&out).WriteScreen(test.p, lines, test.err); err != nil || out.String() != test.want {
				t.Errorf("got %q: %v\nwant %q", &out, err, test.want)
			}
		})
	}
	if lines[2] != "three" {
		t.Error("it changes what it was given")
	}
}

// Lines of others do not move the cursor on a screen either.
func TestAScreenIsSanitised(t *testing.T) {
	var out strings.Builder
	terminal(&out).WriteScreen(Page{Width: 40}, []string{"a\033[2Jb\r" + Page{Color: true}.Paint(Red, "c")}, errors.New("\033]0;title\007"))
	if got, want := out.String(), "\033[H\uFFFD]0;title\uFFFD\033[K\r\na\\u001b[2Jb\\u000d\033[31mc\033[0m\033[K\r\n\033[J"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
