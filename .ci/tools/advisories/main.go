// Command advisories looks for known vulnerabilities in the packages that the binary is built
// from:
//
//	advisories CACHE PACKAGE…
//
// It needs no service: the advisories come with a pinned version of Go's vulnerability database, a
// module, so that the same commit has the same result, also offline once it was downloaded. CACHE
// is a directory for the database in the layout that govulncheck reads.
//
// Advisories of modules end it with status 1. Those of the standard library are only listed,
// since they depend on the Go that builds, and not on the commit.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/vuln/scan"
)

// database is the version of the vulnerability database, and databaseSum its checksum, as in a
// go.sum. The module has no packages to import, so go.mod cannot require it.
const (
	database    = "golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018"
	databaseSum = "h1:mfngRv0Yoh0VApsXKEN82CjD99kl7mtparN3bs3JnqI="
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "advisories:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("write advisories CACHE PACKAGE…")
	}
	dir, err := download()
	if err != nil {
		return err
	}
	db := filepath.Join(args[0], filepath.Base(dir))
	if err := layOut(filepath.Join(dir, "data", "osv"), db); err != nil {
		return err
	}
	var result bytes.Buffer
	c := scan.Command(context.Background(), append([]string{"-db", "file://" + db, "-scan", "package", "-format", "json"}, args[1:]...)...)
	c.Stdout, c.Stderr = &result, os.Stderr
	if err := errors.Join(c.Start(), c.Wait()); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	found, err := parse(&result)
	if err != nil {
		return err
	}
	return report(out, found)
}

// download returns the directory of the database.
func download() (string, error) {
	c := exec.Command("go", "mod", "download", "-json", database)
	c.Stderr = os.Stderr
	raw, err := c.Output()
	var m struct{ Dir, Sum, Error string }
	if decodeErr := json.Unmarshal(raw, &m); decodeErr != nil || m.Error != "" {
		return "", fmt.Errorf("the vulnerability database is not in the module cache, and go mod download does not get it: %s; without a network, copy %s there from another machine", cmp.Or(m.Error, fmt.Sprint(errors.Join(err, decodeErr))), database)
	}
	if m.Sum != databaseSum {
		return "", fmt.Errorf("%s has the checksum %s, not %s", database, m.Sum, databaseSum)
	}
	return m.Dir, nil
}

// An entry is what the indexes have of an advisory.
type entry struct {
	ID       string   `json:"id"`
	Modified string   `json:"modified"`
	Aliases  []string `json:"aliases,omitempty"`
	Affected []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
	} `json:"affected,omitempty"`
}

// layOut writes the advisories of a directory and their indexes in the layout that govulncheck
// reads, unless it was done before.
func layOut(advisories, db string) error {
	last := filepath.Join(db, "index", "db.json")
	if _, err := os.Stat(last); err == nil {
		return nil
	}
	type module struct {
		Path  string  `json:"path"`
		Vulns []entry `json:"vulns"`
	}
	var all []entry
	newest, modules := "", map[string]*module{}
	files, err := filepath.Glob(filepath.Join(advisories, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no advisories", advisories)
	}
	for _, dir := range []string{"index", "ID"} {
		if err := os.MkdirAll(filepath.Join(db, dir), 0o755); err != nil {
			return err
		}
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(db, "ID", filepath.Base(file)), raw, 0o644); err != nil {
			return err
		}
		newest = max(newest, e.Modified)
		all = append(all, entry{ID: e.ID, Modified: e.Modified, Aliases: e.Aliases})
		for _, a := range e.Affected {
			m := modules[a.Package.Name]
			if m == nil {
				m = &module{Path: a.Package.Name}
				modules[a.Package.Name] = m
			}
			if n := len(m.Vulns); n == 0 || m.Vulns[n-1].ID != e.ID {
				m.Vulns = append(m.Vulns, entry{ID: e.ID, Modified: e.Modified})
			}
		}
	}
	byPath := slices.SortedFunc(maps.Values(modules), func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	return errors.Join(
		writeJSON(filepath.Join(db, "index", "modules.json"), byPath),
		writeJSON(filepath.Join(db, "index", "vulns.json"), all),
		writeJSON(last, map[string]string{"modified": newest}))
}

func writeJSON(file string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}

// A finding is an advisory about a package that is used.
type finding struct{ advisory, module, version, fixed, summary string }

// parse returns the advisories about packages in the output of govulncheck, each once for a
// module, sorted by module.
func parse(output io.Reader) ([]finding, error) {
	summaries, found := map[string]string{}, map[finding]bool{}
	for decoder := json.NewDecoder(output); ; {
		var message struct {
			OSV *struct {
				ID, Summary string
			}
			Finding *struct {
				OSV          string
				FixedVersion string `json:"fixed_version"`
				Trace        []struct{ Module, Version, Package string }
			}
		}
		err := decoder.Decode(&message)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the result: %w", err)
		}
		if o := message.OSV; o != nil {
			summaries[o.ID] = o.Summary
		}
		if f := message.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Package != "" {
			found[finding{advisory: f.OSV, module: f.Trace[0].Module, version: f.Trace[0].Version, fixed: f.FixedVersion}] = true
		}
	}
	out := slices.Collect(maps.Keys(found))
	for i := range out {
		out[i].summary = summaries[out[i].advisory]
	}
	slices.SortFunc(out, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.module, b.module), cmp.Compare(a.advisory, b.advisory))
	})
	return out, nil
}

// report writes the findings. An error says that a module has to be raised.
func report(out io.Writer, found []finding) error {
	open := 0
	for _, f := range found {
		if f.module != "stdlib" {
			open++
		}
		fmt.Fprintf(out, "%s: %s %s: %s; fixed in %s\n", f.advisory, f.module, f.version, f.summary, cmp.Or(f.fixed, "no version yet"))
	}
	if open > 0 {
		return fmt.Errorf("%d advisories are about modules in go.mod: raise them", open)
	}
	if len(found) > 0 {
		fmt.Fprintf(out, "these are about the standard library: build releases with a newer Go\n")
	}
	return nil
}
