package remote

import (
	"os/exec"
	"strings"
	"testing"
)

// A shell on the server reads the quoted path unchanged.
func TestThePathSurvivesAShell(t *testing.T) {
	for _, path := range []string{"/a/b.git", "/it's", "/a b;$(touch x)`touch y`", `/back\slash"quote`, "/new!bang", "/-dash", "/ä*?[a]"} {
		out, err := exec.Command("sh", "-c", strings.Replace(command("git-upload-pack", path), "git-upload-pack", "printf %s", 1)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%q became %q (%v)", path, out, err)
		}
	}
	if got := command("git-upload-pack", "/~ada/hub.git"); got != "git-upload-pack '~ada/hub.git'" {
		t.Errorf("home directory: %s", got)
	}
}
