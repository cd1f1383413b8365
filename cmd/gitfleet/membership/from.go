package membership

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/migration"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// propose prints, and with --write also writes, the files that make a fleet of an existing repository.
func (s *initCommand) propose(out io.Writer, dir string) error {
	files, top, within, err := gitsource.OpenWorkTree(dir)
	if err != nil {
		return err
	}
	if within != "." {
		return fmt.Errorf("%s is not the root of its repository; name %s", dir, top)
	}
	p, err := migration.Find(files, s.from)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	snapshot, bad, err := load(p.With(files))
	if err != nil {
		return err
	}
	if snapshot != nil {
		var changed bool
		if p, changed, err = p.Apart(snapshot); err != nil {
			return err
		}
		if changed {
			if snapshot, bad, err = load(p.With(files)); err != nil {
				return err
			}
		}
	}
	var b strings.Builder
	names := slices.Sorted(maps.Keys(p.Files))
	if !s.writes {
		for _, name := range names {
			fmt.Fprintf(&b, "# %s\n%s\n", filepath.Join(dir, name), p.Files[name])
		}
	}
	if len(p.Left) > 0 {
		b.WriteString("Not taken:\n")
		for _, text := range p.Left {
			fmt.Fprintf(&b, "  %s\n", text)
		}
		b.WriteString("  (docs/migrating.md says what to do instead)\n\n")
	}
	sound, err := preview(&b, snapshot, bad)
	if err != nil {
		return err
	}
	if s.writes {
		if err := writeNew(dir, p.Files); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\nwrote %s:\n", output.Count(len(names), "file"))
		for _, name := range names {
			fmt.Fprintf(&b, "  %s\n", filepath.Join(dir, name))
		}
		fmt.Fprintf(&b, "\nNext:\n  gitfleet validate %[1]s\n  gitfleet plan %[1]s\n", dir)
	} else {
		fmt.Fprintf(&b, "\nNothing is written yet; --write writes these %s, and changes no other.\n", output.Count(len(names), "file"))
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	if !sound {
		return exit.Attention
	}
	return nil
}

// load loads a repository with the files of a proposal. bad says why that is not possible.
func load(files fs.FS) (snapshot *hub.Snapshot, bad *hub.LoadError, err error) {
	snapshot, err = hub.NewLoader(settings.Default().HubOptions()).Load(hub.Commit{}, files)
	if bad, is := errors.AsType[*hub.LoadError](err); is {
		return nil, bad, nil
	}
	return snapshot, nil, err
}

// preview says what each cluster would get, and reports whether nothing fails.
func preview(b *strings.Builder, snapshot *hub.Snapshot, bad *hub.LoadError) (sound bool, err error) {
	if bad != nil {
		fmt.Fprintf(b, "With these files the repository does not load yet; correct this first:\n%s\n", indented(bad.Error()))
		return false, nil
	}
	o, err := offline.Plan(snapshot, "")
	if err != nil {
		return false, err
	}
	d := o.Describe()
	b.WriteString("Each cluster would get:\n")
	for _, c := range d.Clusters {
		fmt.Fprintf(b, "  %s: %s\n", c.Name, output.Count(len(c.Objects), "object"))
	}
	problems := snapshot.Warnings.Errors()
	for _, p := range snapshot.Warnings {
		if p.Severity == problem.Failure {
			problems = append(problems, p)
		}
	}
	if len(problems) == 0 {
		return true, nil
	}
	fmt.Fprintf(b, "What fails for the clusters that would get it, and is left out there:\n")
	for _, p := range problems {
		fmt.Fprintf(b, "  %s\n", p.Error())
	}
	return false, nil
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// writeNew writes files to a directory, or none if one of them exists. Links in the directory, which may belong to a
// repository of others, are not followed out of it.
func writeNew(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := root.Lstat(name); err == nil {
			return fmt.Errorf("%s exists; name a directory without it", filepath.Join(dir, name))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if err := root.WriteFile(name, []byte(files[name]), 0o644); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}
