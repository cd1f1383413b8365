// Command notices writes the licences and notices of all modules that packages come from. It reads what
// "go list -deps -json" prints, also of several platforms:
//
//	go list -deps -json=Dir,Root,Standard,Module ./cmd/gitfleet | notices > THIRD_PARTY_NOTICES
//
// Equal texts are written once. A module without a licence is an error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// A listed package, as go list prints it. Root is that of Go for the standard library.
type listed struct {
	Dir, Root string
	Standard  bool
	Module    *module
}

type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// noticeFiles are the names of files with a licence or a notice, and licenceFiles of those with a licence.
var (
	noticeFiles  = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicen[sc]e|notice|patents|copyright)s?([-._].*)?$`)
	licenceFiles = regexp.MustCompile(`(?i)^(licen|copying|unlicen)`)
)

// run writes the texts, sorted by the modules that have them.
func run(in io.Reader, out io.Writer) error {
	owners := map[string][]string{} // of each text
	licensed := map[string]bool{}   // by module
	seen := map[string]bool{}       // files
	for decoder := json.NewDecoder(in); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read the list of packages: %w", err)
		}
		name, root := p.owner()
		if name == "" {
			continue
		}
		if !licensed[name] {
			licensed[name] = false // also a module without any file
		}
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			if rel, err := filepath.Rel(root, dir); err != nil || strings.HasPrefix(rel, "..") {
				break
			}
			if seen[dir] {
				continue
			}
			seen[dir] = true
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if !e.Type().IsRegular() || !noticeFiles.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
					continue
				}
				text, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					return err
				}
				rel, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
				if err != nil {
					return err
				}
				body := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
				owners[body] = append(owners[body], name+" ("+filepath.ToSlash(rel)+")")
				licensed[name] = licensed[name] || licenceFiles.MatchString(e.Name())
			}
		}
	}
	var missing []string
	for name, ok := range licensed {
		if !ok {
			missing = append(missing, name)
		}
	}
	if len(licensed) == 0 || len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("of %d modules these have no licence: %s", len(licensed), strings.Join(missing, ", "))
	}
	return write(out, owners)
}

// owner returns the module of a package with its version, and its directory; nothing for a package of
// gitfleet.
func (p listed) owner() (name, root string) {
	m := p.Module
	switch {
	case p.Standard:
		return "the standard library of Go", p.Root
	case m == nil || m.Main:
		return "", ""
	case m.Replace != nil:
		m = m.Replace
	}
	return m.Path + " " + m.Version, m.Dir
}

func write(out io.Writer, owners map[string][]string) error {
	for _, all := range owners {
		slices.Sort(all)
	}
	texts := slices.SortedFunc(maps.Keys(owners), func(a, b string) int { return strings.Compare(owners[a][0], owners[b][0]) })
	var b strings.Builder
	b.WriteString("gitfleet contains these modules, with the licences and notices below.\n")
	for _, text := range texts {
		b.WriteString("\n" + strings.Repeat("=", 80) + "\n")
		for _, owner := range owners[text] {
			b.WriteString(owner + "\n")
		}
		b.WriteString(strings.Repeat("-", 80) + "\n\n" + text + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
