package proposal

import (
	"strings"
	"testing"
)

// The commit that removes a deleted object says so, and has the trailer that allows the
// deletion.
func TestARemovalAllowsTheDeletion(t *testing.T) {
	o := heldChange(7, "east", "west")
	o.deleted, o.paths = true, nil
	if got, want := o.message(trailer(o.hash)), "web.yaml: remove ConfigMap shop/web\n\nIt was deleted on member clusters.\n\nGitfleet-Allow-Delete: crp/web\n"+trailer(o.hash)+"\n"; got != want {
		t.Errorf("the message is\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{"Somebody deleted `ConfigMap shop/web`", "It is not created again until", "- (the whole object)", "takes the deletion over", "**Closing** without merging creates the object again", "keeps it deleted", "`Gitfleet-Allow-Delete: crp/web`"} {
		if body := o.body("shop", nil); !strings.Contains(body, want) {
			t.Errorf("the body has no %s:\n%s", want, body)
		}
	}
}
