package walk

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// ConfigFile is the name of a file at the root of the hub, which is the configured path, that says
// how the hub is read.
const ConfigFile = ".gitfleet.yaml"

// Below lists everything that belongs to the hub: the directories that the ConfigFile of root names, or else all of root.
func Below(t *tree.Tree, root string, opts Options) (*Files, error) {
	w := &walker{tree: t, Options: opts}
	roots, err := w.roots(root)
	if err != nil {
		return nil, err
	}
	for _, r := range roots {
		if err := w.from(r); err != nil {
			return nil, err
		}
	}
	return &w.found, nil
}

// roots returns the directories of the hub, sorted, none of them below another one.
func (w *walker) roots(root string) ([]string, error) {
	if mode, at, ok, err := w.tree.Lookup(root); err != nil || !ok || at != root || !mode.IsDir() {
		return []string{root}, err // from reports it
	}
	name := path.Join(root, ConfigFile)
	l, err := w.tree.List(root)
	if err != nil {
		return nil, err
	}
	e := l.Find(ConfigFile)
	if e == nil {
		return []string{root}, nil
	}
	if !e.Type().IsRegular() {
		w.problem(problem.Error, name, "the settings of the hub must be a regular file; commit the file itself")
		return nil, nil
	}
	data, fault, err := w.tree.Read(name)
	if err != nil {
		return nil, err
	}
	if fault != "" {
		w.problem(problem.Error, name, "%s", fault)
		return nil, nil
	}
	var roots []string
	documents := 0
	file := document.Read(name, data, w.Limits, math.MaxInt64, func(r *document.Report, value any) {
		documents++
		roots = append(roots, w.readRoots(r, root, value)...)
	})
	w.found.Problems = append(w.found.Problems, file.Problems...)
	switch {
	case file.Problems.HasErrors():
		return nil, nil
	case documents > 1:
		w.problem(problem.Error, name, "the file has more than one document; write one")
		return nil, nil
	case documents == 0:
		return []string{root}, nil
	}
	slices.Sort(roots)
	var outer []string
	for _, r := range roots {
		if !slices.ContainsFunc(outer, func(o string) bool { return o == "." || grant.Below(o, r) }) {
			outer = append(outer, r)
		}
	}
	w.checkUnread(name, root, outer)
	return outer, w.exclude(name, root, outer)
}

// exclude records what the roots of a ConfigFile leave out: the entries of each directory above them that lead to none.
func (w *walker) exclude(by, dir string, roots []string) error {
	l, err := w.tree.List(dir)
	if err != nil {
		return err
	}
	for _, e := range l {
		name := path.Join(dir, e.Name())
		switch {
		case slices.ContainsFunc(roots, func(r string) bool { return r == "." || grant.Below(r, name) }):
		case e.IsDir() && slices.ContainsFunc(roots, func(r string) bool { return grant.Below(name, r) }):
			err = w.exclude(by, name, roots)
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir() || document.IsManifest(name):
			w.found.Excluded = append(w.found.Excluded, Exclusion{name, "the roots in " + by + " do not have it"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readRoots reads the document of a ConfigFile.
func (w *walker) readRoots(r *document.Report, root string, value any) []string {
	config, isMap := value.(map[string]any)
	if !isMap {
		r.Errorf(r.Object, "must be a mapping with roots, a list of directories, and not %s", document.Describe(value))
		return nil
	}
	for key := range config {
		if key != "roots" {
			r.Errorf(r.Field(key), "unknown field; %s", schema.SuggestKnown(key, []string{"roots"}))
		}
	}
	list, isList := config["roots"].([]any)
	if !isList || len(list) == 0 {
		r.Errorf(r.Field("roots"), "must be a list of the directories that are the hub, relative to this file, with at least one entry")
		return nil
	}
	var roots []string
	for i, item := range list {
		p := r.Field("roots").At(i)
		text, _ := item.(string)
		dir := path.Join(root, text)
		if text == "" || path.IsAbs(text) || !grant.Below(strings.TrimPrefix(root, "."), dir) || strings.HasPrefix(dir, "..") {
			r.Errorf(p, "must be a directory relative to this file, and in its directory or below")
			continue
		}
		mode, at, ok, err := w.tree.Lookup(dir)
		if err != nil || !ok || at != dir || !mode.IsDir() {
			r.Errorf(p, "the commit has no directory %s; correct the name", dir)
			continue
		}
		roots = append(roots, dir)
	}
	return roots
}

// checkUnread reports the paths of others in the hub, with grants of their own, that a ConfigFile keeps from being read.
func (w *walker) checkUnread(by, root string, roots []string) {
	for _, g := range w.Grants {
		if g != w.Grants.Of(by) && grant.Below(strings.TrimPrefix(root, "."), g.Path) && !slices.ContainsFunc(roots, func(r string) bool { return r == "." || grant.Below(r, g.Path) }) {
			w.found.Problems = append(w.found.Problems, w.Grants.CheckRead(by, g.Path)...)
		}
	}
}
