package proposal

import (
	"strings"
	"testing"
)

// The commit that removes a deleted object says so, and has the trailer that allows the
// deletion.
func TestARemovalAllowsTheDeletion(t *testing.T) {
	c := heldChange(7, "east", "west")
	c.deleted, c.paths = true, nil
	if got, want := c.message(trailer(c.hash)), "web.yaml: remove ConfigMap shop/web\n\nIt was deleted on member clusters.\n\nGitfleet-Allow-Delete: crp/web\n"+trailer(c.hash)+"\n"; got != want {
		t.Errorf("the message is\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{"`ConfigMap shop/web` was deleted on 2 clusters", "- (the whole object)", "takes the deletion over", "**Closing** creates the object again", "`Gitfleet-Allow-Delete: crp/web`"} {
		if body := c.body("shop", nil); !strings.Contains(body, want) {
			t.Errorf("the body has no %s:\n%s", want, body)
		}
	}
}

// A document is removed with the comments before it; the other documents stay as they are.
func TestWithoutDocument(t *testing.T) {
	const three = "# one\na: 1\n---\n# two\nb: 2\n---\nc: 3\n"
	tests := map[string]struct {
		text string
		line int
		want string
	}{
		"the first":                 {three, 2, "# two\nb: 2\n---\nc: 3\n"},
		"one in the middle":         {three, 5, "# one\na: 1\n---\nc: 3\n"},
		"the last":                  {three, 7, "# one\na: 1\n---\n# two\nb: 2\n"},
		"the only one":              {"a: 1\n", 1, "nothing"},
		"not where a document is":   {three, 6, "the object is not a document of its own"},
		"an item of a list":         {"kind: List\nitems:\n- a: 1\n", 3, "the object is not a document of its own"},
		"a separator with a remark": {"a: 1\n--- # next\nb: 2\n", 3, "a: 1\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			left, err := withoutDocument([]byte(test.text), test.line)
			got := string(left)
			switch {
			case err != nil:
				got = err.Error()
			case left == nil:
				got = "nothing"
			}
			if got != test.want {
				t.Errorf("left is %q, want %q", got, test.want)
			}
		})
	}
}
