package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/test/golden"
)

// TestScenes loads the repository of each scene and compares all that is said
// of it. A scene's text may have lines that txtar cannot express:
//
//	! path NAME               the directory to read
//	! limit NAME NUMBER       a limit
//	! symlink NAME TARGET     a symbolic link
//	! submodule NAME          a submodule
//	! quoted NAME             the file holds a Go string, in quotes
//	! fill NAME COUNT QUOTED  a file that repeats a text
func TestScenes(t *testing.T) {
	for _, dir := range []string{"scenes", "hostile"} {
		t.Run(dir, func(t *testing.T) {
			golden.Archives(t, filepath.Join("testdata", dir, "*.txtar"), func(t *testing.T, archive *txtar.Archive) {
				files, opts := readScene(t, archive)
				snapshot, err := Load(Commit{Hash: "c0ffee"}, files, opts)
				golden.Answer(t, archive, "want", tell(snapshot, err))
			})
		})
	}
}

func readScene(t *testing.T, archive *txtar.Archive) (files fstest.MapFS, opts Options) {
	t.Helper()
	files = fstest.MapFS{}
	for _, f := range archive.Files {
		if f.Name == "want" {
			continue
		}
		files[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "!" {
			direct(t, files, &opts, words[1:], line)
		}
	}
	return files, opts
}

func direct(t *testing.T, files fstest.MapFS, opts *Options, words []string, line string) {
	t.Helper()
	name := words[1]
	switch words[0] {
	case "path":
		opts.Path = name
	case "limit":
		setLimit(t, &opts.Limits, name, words[2])
	case "symlink":
		files[name] = &fstest.MapFile{Data: []byte(words[2]), Mode: fs.ModeSymlink | 0o777}
	case "submodule":
		files[name] = &fstest.MapFile{Mode: fs.ModeIrregular}
	case "quoted":
		files[name].Data = []byte(unquote(t, strings.TrimSpace(string(files[name].Data))))
	case "fill":
		count, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		text := unquote(t, strings.TrimSpace(line[strings.Index(line, `"`):]))
		files[name] = &fstest.MapFile{Data: []byte(strings.Repeat(text, count)), Mode: 0o644}
	default:
		t.Fatalf("unknown direction %q", line)
	}
}

func unquote(t *testing.T, s string) string {
	t.Helper()
	text, err := strconv.Unquote(s)
	if err != nil {
		t.Fatalf("unquote %s: %v", s, err)
	}
	return text
}

func setLimit(t *testing.T, l *Limits, name, value string) {
	t.Helper()
	if name == "buildTime" {
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		l.BuildTime = d
		return
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	switch name {
	case "files":
		l.Files = n
	case "fileSize":
		l.FileSize = int64(n)
	case "documents":
		l.Documents = n
	case "aliasExpansion":
		l.AliasExpansion = n
	case "depth":
		l.Depth = n
	case "objects":
		l.Objects = n
	case "buildOutput":
		l.BuildOutput = int64(n)
	default:
		t.Fatalf("unknown limit %q", name)
	}
}

// tell writes what Load answered, for people to check.
func tell(s *Snapshot, err error) string {
	var b strings.Builder
	if loadError := (*LoadError)(nil); errors.As(err, &loadError) {
		b.WriteString("does not load\n")
		tellProblems(&b, loadError.Problems)
		return b.String()
	}
	if err != nil {
		return "cannot be read: " + err.Error() + "\n"
	}
	for _, c := range s.Clusters {
		fmt.Fprintf(&b, "cluster %s %v at %s\n", c.Name, c.Labels, c.Origin)
	}
	for _, p := range s.Placements {
		fmt.Fprintf(&b, "%s %s at %s\n", p.Key, p.Spec.Policy.PlacementType, p.Origin)
	}
	for _, o := range s.ClusterOverrides {
		fmt.Fprintf(&b, "cro/%s at %s\n", o.Name, o.Origin)
	}
	for _, o := range s.Overrides {
		fmt.Fprintf(&b, "ro/%s/%s at %s\n", o.Namespace, o.Name, o.Origin)
	}
	for _, o := range s.Objects {
		fmt.Fprintf(&b, "%s at %s\n", o.ID, whereText(o.Origin))
	}
	tellProblems(&b, s.Warnings)
	return b.String()
}

func tellProblems(b *strings.Builder, problems Problems) {
	for _, p := range problems {
		fmt.Fprintf(b, "%s: %s\n", p.Severity, p.Error())
	}
}
