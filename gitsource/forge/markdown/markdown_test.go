package markdown

import "testing"

// Text that others wrote stays text, on one line, whatever is in it.
func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"web":                 "`web`",
		"a `b` c":             "`` a `b` c ``",
		"``":                  "``` `` ```",
		"one\ntwo":            "`one↵two`",
		"\x1b[31m\u202e\xff!": "`\\x1b[31m\\u202e\uFFFD!`",
		"a\u200bb\u2066\u2028\u3164\u00a0\ufe0f\U000e0041": "`a\\u200bb\\u2066\\u2028\\u3164\\u00a0\\ufe0f\\U000e0041`",
		"naïve 日本 🚀 e\u0301":                               "`naïve 日本 🚀 e\u0301`",
	} {
		if got := Code(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Text that others wrote cannot close its code block.
func TestCodeBlock(t *testing.T) {
	for text, want := range map[string]string{
		"+ a\n":         "```diff\n+ a\n```\n",
		"````\n@here\n": "`````diff\n````\n@here\n`````\n",
	} {
		if got := CodeBlock("diff", text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestList(t *testing.T) {
	names := []string{"east", "west", "north"}
	for most, want := range map[int]string{1: "`east`, and 2 more", 2: "`east`, `west`, and 1 more", 3: "`east`, `west`, `north`", 9: "`east`, `west`, `north`"} {
		if got := List(names, most); got != want {
			t.Errorf("at most %d: %s, want %s", most, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 clusters", 1: "1 cluster", 2: "2 clusters"} {
		if got := Count(n, "cluster"); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
