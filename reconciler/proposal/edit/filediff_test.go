package edit

import "testing"

// The edit of a file is a unified diff: also of a file that is new, removed or without a final line
// break. A file that may have values of Secrets is not shown, neither before nor after.
func TestDiffsOfFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file FileChange
		want string
	}{
		"changed":               {FileChange{Path: "a", Before: []byte("x\ny\n"), After: []byte("x\nz\n")}, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"},
		"new":                   {FileChange{Path: "a", After: []byte("x\n")}, "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n"},
		"removed":               {FileChange{Path: "a", Before: []byte("x\n")}, "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		"no line break":         {FileChange{Path: "a", Before: []byte("x"), After: []byte("y")}, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"},
		"the same":              {FileChange{Path: "a", Before: []byte("x\n"), After: []byte("x\n")}, ""},
		"had a Secret":          {FileChange{Path: "a", Before: []byte("kind: Secret\n"), After: []byte("x\n")}, ""},
		"has a Secret":          {FileChange{Path: "a", Before: []byte("x\n"), After: []byte("kind: Secret\n")}, ""},
		"removed with a Secret": {FileChange{Path: "a", Before: []byte("kind: Secret\n")}, ""},
	} {
		if got := test.file.Diff(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestMayHaveSecrets(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: Secret\n": true, `{"kind": "SecretList"}`: true, "secretGenerator:\n": true, "stringData: {a: b}\n": true,
		"- op: replace\n  path: /data/password\n  value: eA==\n":                     true,
		"kind: ConfigMap\n---\n- op: replace\n  path: /data/level\n  value: debug\n": false,
		"kind: SecretStore\n": false, "kind: Deployment\n": false,
	} {
		if got := mayHaveSecrets([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
