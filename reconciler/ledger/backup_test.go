package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A backup of any ledger can be imported, and exporting it again gives the same backup.
func TestBackupIsPutBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, t.TempDir())
		l := New()
		for i := range rapid.IntRange(0, 30).Draw(rt, "steps") {
			change(rt, l, i)
		}
		if err := s.Save(l); err != nil {
			rt.Fatal(err)
		}
		backup := exported(rt, s)
		other := open(t, t.TempDir())
		if err := other.Import(strings.NewReader(backup), false); err != nil {
			rt.Fatalf("%v\n%s", err, backup)
		}
		got, err := other.Load()
		if err != nil || dump(t, got) != dump(t, l) {
			rt.Fatalf("imported, %v:\n%s\nwant\n%s", err, dump(t, got), dump(t, l))
		}
		if again := exported(rt, other); records(again) != records(backup) {
			rt.Fatalf("exported again\n%s\nwant\n%s", again, backup)
		}
	})
}

// Freezes and cordons of a backup can be looked up and resumed by their subjects.
func TestBackupKeepsEffects(t *testing.T) {
	subjects := []Subject{{Effect: Freezes}, {Placement: web, Effect: Freezes}, {Cluster: "east", Effect: Cordons}, {Cluster: "east"}}
	s, other, l := open(t, t.TempDir()), open(t, t.TempDir()), New()
	for _, subject := range subjects {
		l.Suspend(Suspension{Subject: subject, By: "alice"})
	}
	if err := errors.Join(s.Save(l), other.Import(strings.NewReader(exported(t, s)), false)); err != nil {
		t.Fatal(err)
	}
	got, err := other.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range subjects {
		if found, ok := got.Suspension(subject); !ok || found.Subject != subject {
			t.Errorf("%s %s: found %t, %s", subject, subject.Effect.Verb(), ok, found)
		}
	}
}

// records is a backup without its first line, which has the time.
func records(backup string) string {
	_, rest, _ := strings.Cut(backup, "\n")
	return rest
}

func exported(t interface{ Fatal(...any) }, s Archive) string {
	var b bytes.Buffer
	if err := s.Export(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An incomplete backup, or a file that is none, changes nothing. Existing data is replaced only
// on request.
func TestDoubtfulBackupIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := bound()
	l.SetInForce("v1")
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	whole := exported(t, s)
	lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	empty := open(t, t.TempDir())
	for name, test := range map[string]struct{ backup, says string }{
		"nothing":                 {"", "no backup that gitfleet state export has written"},
		"something else":          {"{\"kind\": \"List\"}\n", "no backup that gitfleet state export has written"},
		"of a newer gitfleet":     {strings.Replace(whole, fmt.Sprintf(`"schema":%d`, schema), `"schema":99`, 1), "newer gitfleet (schema 99"},
		"cut off":                 {strings.Join(lines[:len(lines)-1], ""), "cut off"},
		"with a line missing":     {lines[0] + strings.Join(lines[2:], ""), "the end says something else"},
		"with a line twice":       {lines[0] + lines[1] + strings.Join(lines[1:], ""), "line 3"},
		"with a line too many":    {whole + "\n{}", "the end says something else"},
		"of a kind nobody knows":  {strings.Replace(whole, `"record":"binding"`, `"record":"ticket"`, 1), `line 2: there is no record of kind "ticket"`},
		"of a placement of wrong": {strings.Replace(whole, `"crp/web"`, `"web"`, 1), `"web" names no placement`},
		"with a broken record":    {strings.Replace(whole, `"Generation":1`, `"Generation":"one"`, 1), "Generation"},
	} {
		t.Run(name, func(t *testing.T) {
			err := empty.Import(strings.NewReader(test.backup), true)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("import: %v; want it to say %q", err, test.says)
			}
			if l, err := empty.Load(); err != nil || !l.Empty() || l.InForce() != "" {
				t.Errorf("the refused backup left %v\n%s", err, dump(t, l))
			}
		})
	}
	if err := empty.Import(strings.NewReader(whole), false); err != nil {
		t.Fatal(err)
	}
	err := s.Import(strings.NewReader(whole), false)
	if err == nil || !strings.Contains(err.Error(), "is not empty") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("import into what is not empty: %v", err)
	}
	other := New()
	other.SetInForce("v9")
	from := open(t, t.TempDir())
	if err := errors.Join(from.Save(other), s.Import(strings.NewReader(exported(t, from)), true)); err != nil {
		t.Fatal(err)
	}
	if now, err := s.Load(); err != nil || now.InForce() != "v9" || !now.Empty() {
		t.Errorf("after it was replaced: %v\n%s", err, dump(t, now))
	}
	kept, err := loadBytes(t, read(t, filepath.Join(dir, "ledger.db"+beforeImport)))
	if err != nil || dump(t, kept) != dump(t, l) {
		t.Errorf("what was replaced is not kept: %v\n%s", err, dump(t, kept))
	}
}
