package proposal

import (
	"fmt"
	"testing"
)

// A body that lists some clusters is about these; one that lists none, or not all, may be about any.
func TestClustersInABody(t *testing.T) {
	var many []string
	for i := range most + 1 {
		many = append(many, fmt.Sprintf("member-%02d", i))
	}
	tests := map[string]struct {
		body string
		of   []string
		want bool
	}{
		"one of them":      {heldChange(7, "east", "west").body("shop", nil), []string{"north", "west"}, true},
		"none of them":     {heldChange(7, "east", "west").body("shop", nil), []string{"north"}, false},
		"no clusters":      {heldChange(7, "east").body("shop", nil), nil, false},
		"a long list":      {heldChange(7, many...).body("shop", nil), []string{"north"}, true},
		"edited by people": {"by hand", []string{"north"}, true},
		"edited, for none": {"by hand", nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mayListAny(test.body, test.of); got != test.want {
				t.Errorf("it may name %q: %v", test.of, got)
			}
		})
	}
}

// A marker counts only on a line of its own, and only for its fleet.
func TestMarkers(t *testing.T) {
	const hash = "0123456789abcdef"
	for body, want := range map[string]string{
		marker("shop", hash): hash, "text\r\n" + marker("shop", hash) + "\r\nmore": hash,
		marker("other", hash): "", "> " + marker("shop", hash): "", "": "",
	} {
		if got := markedAs(body, "shop"); got != want {
			t.Errorf("%q is marked as %q, want %q", body, got, want)
		}
	}
	if body := markEnded(marker("shop", hash)); !endedByGitfleet(body+"\r\n") || endedByGitfleet(marker("shop", hash)) || markedAs(body, "shop") != hash {
		t.Errorf("a body that ended is %q", body)
	}
}
