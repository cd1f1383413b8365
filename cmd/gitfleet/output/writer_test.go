package output

import (
	"io"
	"strings"
	"testing"
)

// terminal returns a writer that takes a destination for a terminal.
func terminal(to io.Writer) *Writer {
	return &Writer{to: to, terminal: true, size: func() (int, int, error) { return 80, 24, nil }}
}

// No text moves the cursor, hides text or changes the direction of writing, on a terminal and in
// a file, which may be shown on one later.
func TestAWriterSanitises(t *testing.T) {
	red := Page{Color: true}.Paint(Red, "red")
	for name, test := range map[string]struct {
		text, terminal, file string
	}{
		"plain text":                 {"größe 世界 🙂\tx\n", "größe 世界 🙂\tx\n", "größe 世界 🙂\tx\n"},
		"a sequence":                 {"a\033[2Jb", `a\u001b[2Jb`, `a\u001b[2Jb`},
		"a color of others":          {"a\033[31mb", `a\u001b[31mb`, `a\u001b[31mb`},
		"a color of ours":            {red, "\033[31mred\033[0m", "red"},
		"an 8-bit sequence":          {"a\u009b2Jb", `a\u009b2Jb`, `a\u009b2Jb`},
		"a title":                    {"\033]0;owned\007", `\u001b]0;owned\u0007`, `\u001b]0;owned\u0007`},
		"an overwritten line":        {"failed\rok", `failed\u000dok`, `failed\u000dok`},
		"a direction":                {"a\u202eb\u2066c", `a\u202eb\u2066c`, `a\u202eb\u2066c`},
		"invisible":                  {"a\u200bb\U000e0041", `a\u200bb\udb40\udc41`, `a\u200bb\udb40\udc41`},
		"a byte that is not UTF-8":   {"a\xffb", `a\xffb`, `a\xffb`},
		"the replacement character":  {"a\uFFFDb", "a\uFFFDb", "a\uFFFDb"},
		"a noncharacter of no style": {"a\uFDEFb", `a\ufdefb`, `a\ufdefb`},
	} {
		t.Run(name, func(t *testing.T) {
			for want, w := range map[string]func(io.Writer) *Writer{test.terminal: terminal, test.file: NewWriter} {
				var whole, bytewise strings.Builder
				if n, err := io.WriteString(w(&whole), test.text); n != len(test.text) || err != nil {
					t.Errorf("wrote %d of %d bytes: %v", n, len(test.text), err)
				}
				slow := w(&bytewise)
				for i := range len(test.text) {
					slow.Write([]byte{test.text[i]})
				}
				if test.terminal == test.file && whole.String() != want || bytewise.String() != whole.String() {
					t.Errorf("got %q at once and %q byte by byte, want %q", &whole, &bytewise, want)
				}
			}
		})
	}
	var out strings.Builder
	io.WriteString(terminal(&out), red)
	io.WriteString(NewWriter(&out), red)
	if got, want := out.String(), "\033[31mred\033[0mred"; got != want {
		t.Errorf("styles are written as %q, want %q", got, want)
	}
}

// A program reads a document as it is; on a terminal it is text.
func TestRaw(t *testing.T) {
	const document = "a\u202eb\x00"
	var file, screen strings.Builder
	io.WriteString(Raw(NewWriter(&file)), document)
	io.WriteString(Raw(terminal(&screen)), document)
	if file.String() != document || screen.String() != `a\u202eb\u0000` {
		t.Errorf("a file gets %q, a terminal %q", &file, &screen)
	}
}

// A progress line is replaced on a terminal, and a new line elsewhere.
func TestAProgressLine(t *testing.T) {
	for want, w := range map[string]func(io.Writer) *Writer{
		"\rone\033[K\rtwo\uFFFD\033[K\n": terminal,
		"one\ntwo\uFFFD\n":               NewWriter,
	} {
		var out strings.Builder
		l := NewProgressLine(w(&out))
		for _, text := range []string{"one", "one", "two\033"} {
			l.Show(text)
		}
		if l.End(); out.String() != want {
			t.Errorf("got %q, want %q", &out, want)
		}
	}
}
