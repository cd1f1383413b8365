package offline

import "testing"

func TestSplitRepository(t *testing.T) {
	tests := map[string]struct{ repo, ref string }{
		"https://git.example.com/org/fleet@main":          {"https://git.example.com/org/fleet", "main"},
		"https://git.example.com/org/fleet@feature/a@b":   {"https://git.example.com/org/fleet@feature/a", "b"},
		"https://git.example.com/org/fleet":               {"https://git.example.com/org/fleet", ""},
		"https://ada:secret@git.example.com":              {"https://ada:secret@git.example.com", ""},
		"ssh://git@git.example.com/org/fleet":             {"ssh://git@git.example.com/org/fleet", ""},
		"ssh://git@git.example.com:2222/org/fleet@v1.2.0": {"ssh://git@git.example.com:2222/org/fleet", "v1.2.0"},
		"git@git.example.com:org/fleet.git":               {"git@git.example.com:org/fleet.git", ""},
		"git@git.example.com:org/fleet.git@main":          {"git@git.example.com:org/fleet.git", "main"},
		"file:///srv/fleet@main":                          {"file:///srv/fleet", "main"},
		"../fleet@main":                                   {"../fleet", "main"},
		"/srv/a:b@main":                                   {"/srv/a:b", "main"},
		".@HEAD":                                          {".", "HEAD"},
	}
	for what, want := range tests {
		repo, ref := splitRepository(what)
		if repo != want.repo || ref != want.ref {
			t.Errorf("%s: %s at %s", what, repo, ref)
		}
	}
}
