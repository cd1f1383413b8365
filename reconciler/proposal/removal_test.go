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
