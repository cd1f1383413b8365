package hub

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/repository"
)

// TestScenes loads the repository of each scene and compares the result with the recorded one.
func TestScenes(t *testing.T) {
	for _, dir := range []string{"scenes", "hostile"} {
		t.Run(dir, func(t *testing.T) {
			golden.Archives(t, filepath.Join("testdata", dir, "*.txtar"), func(t *testing.T, archive *txtar.Archive) {
				files, opts := readScene(t, archive)
				snapshot, err := load(Commit{Hash: "c0ffee"}, files, opts)
				golden.Answer(t, archive, repository.Answer, describe(snapshot, err))
			})
		})
	}
}

func readScene(t *testing.T, archive *txtar.Archive) (files fstest.MapFS, opts Options) {
	t.Helper()
	r, err := repository.Read(archive)
	if err != nil {
		t.Fatal(err)
	}
	opts.Path = r.Path
	for name, value := range r.Limits {
		setLimit(t, &opts.Limits, name, value)
	}
	return r.Files, opts
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
	case "commitSize":
		l.CommitSize = int64(n)
	case "builds":
		l.Builds = n
	case "buildInput":
		l.BuildInput = int64(n)
	case "buildOutput":
		l.BuildOutput = int64(n)
	default:
		t.Fatalf("unknown limit %q", name)
	}
}

// describe formats the result of Load for people to check.
func describe(s *Snapshot, err error) string {
	var b strings.Builder
	if loadError := (*LoadError)(nil); errors.As(err, &loadError) {
		b.WriteString("does not load\n")
		writeProblems(&b, loadError.Problems)
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
		fmt.Fprintf(&b, "%s at %s\n", o.ID, positionText(o.Origin))
		if o.Overlay == nil {
			continue
		}
		for _, dir := range slices.Sorted(maps.Keys(o.Overlay.Builds)) {
			build := o.Overlay.Builds[dir]
			fmt.Fprintf(&b, "  %s %s\n", dir, build.Err)
			for _, built := range build.Objects {
				fmt.Fprintf(&b, "    %s at %s\n", built.ID, positionText(built.Origin))
			}
		}
	}
	writeProblems(&b, s.Warnings)
	return b.String()
}

func writeProblems(b *strings.Builder, problems problem.List) {
	for _, p := range problems {
		fmt.Fprintf(b, "%s: %s\n", p.Severity, p.Error())
	}
}
