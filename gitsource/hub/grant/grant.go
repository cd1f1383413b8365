// Package grant decides what a set of files may produce.
//
// Git says who may change a file, but not what the file does: a kustomization can build the files of
// others, and a placement can select their objects. A Grant says what the files below a path may
// produce, and Check compares that with what they do produce once a commit is rendered: objects, the
// contents of envelopes, and what placements and overrides select. Everything is denied that is not
// granted.
package grant

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Grant is what the files below a path may produce.
type Grant struct {
	// Path is a directory or file; empty is the whole repository.
	Path string
	// Field is the name of the setting, such as source.signatures.paths[1]. Messages name it.
	Field string
	// Namespaces are those of the objects, and the names of Namespace objects; none are granted if it is
	// empty. Like the fields below it has patterns in the syntax of path.Match, and "*" matches all.
	Namespaces []string
	// Kinds are written as Kind or Kind.GROUP. If it is empty, all kinds are granted that are known to be
	// namespaced, except overrides.
	Kinds []string
	// Placements are written as crp/NAME or rp/NAMESPACE/NAME; none are granted if it is empty.
	Placements []string
	// SharedBases are directories to which kustomizations outside of Path may refer. What is in them
	// is deployed only by such references.
	SharedBases []string
}

// A Set has the grants of a repository. Nil grants everything.
type Set []*Grant

// Of returns the grant of a file, that with the longest path; nil if there is none.
func (s Set) Of(file string) *Grant {
	i := Longest(len(s), func(i int) string { return s[i].Path }, file)
	if i < 0 {
		return nil
	}
	return s[i]
}

// Longest returns which of n paths has a file: the longest if there are several, and -1 if none has.
func Longest(n int, pathOf func(i int) string, file string) int {
	best := -1
	for i := range n {
		if p := pathOf(i); Below(p, file) && (best < 0 || len(p) > len(pathOf(best))) {
			best = i
		}
	}
	return best
}

// Below reports whether a file is dir or below it. An empty dir has every file.
func Below(dir, file string) bool {
	return dir == "" || file == dir || strings.HasPrefix(file, dir+"/")
}

// Validate returns a message about the first pattern that is malformed or shared base that is not below
// the path, with the name of its field; both are empty if there is none.
func (g *Grant) Validate() (field, message string) {
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"namespaces", g.Namespaces}, {"kinds", g.Kinds}, {"placements", g.Placements}} {
		for i, p := range list.patterns {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				return fmt.Sprintf("%s[%d]", list.field, i), fmt.Sprintf("%q is not a name or a pattern such as web-*", p)
			}
		}
	}
	for i, dir := range g.SharedBases {
		if dir == "" || path.Clean(dir) != dir || !Below(g.Path, dir) || path.IsAbs(dir) || dir == "." || strings.HasPrefix(dir, "..") {
			return fmt.Sprintf("sharedBases[%d]", i), fmt.Sprintf("%q must be a directory of the repository in path %q, since a path shares only what is its own", dir, g.Path)
		}
	}
	return "", ""
}

// Releases reports whether blocked deletions of a placement may be released, whose name may be without its
// kind; "*" names all placements.
func (g *Grant) Releases(name string) bool {
	switch {
	case name == "*":
		return slices.Contains(g.Placements, "*")
	case strings.HasPrefix(name, "crp/"), strings.HasPrefix(name, "rp/"):
		return matches(g.Placements, name)
	case strings.Contains(name, "/"):
		return matches(g.Placements, "rp/"+name)
	}
	return matches(g.Placements, "crp/"+name)
}

// Shared reports whether a file is in a directory that its path shares.
func (s Set) Shared(file string) bool {
	g := s.Of(file)
	return g != nil && slices.ContainsFunc(g.SharedBases, func(dir string) bool { return Below(dir, file) })
}

// CheckRead returns why a file, such as an ignore file, may not decide whether name, a file or directory,
// is read: some of it is in another path, whose objects would be deleted.
func (s Set) CheckRead(by, name string) problem.List {
	g := s.Of(by)
	if g == nil || g.unlimited() {
		return nil
	}
	for _, other := range s {
		if other != g && (s.Of(name) == other || Below(name, other.Path)) {
			return problem.List{{Origin: api.Origin{Path: by}, Severity: problem.Error,
				Message: fmt.Sprintf("decides whether %s is read, and that is for files in %s; leave it to those, or add \"*\" to namespaces, kinds and placements of %s", name, other.name(), g.Field)}}
		}
	}
	return nil
}

// A Product is an object that files produce, or one that they select.
type Product struct {
	ID api.ID
	// Namespaced says that the kind is known to be namespaced.
	Namespaced bool
	// Origin and Field are the position that problems name.
	Origin api.Origin
	Field  string
	// Unread says that it could not be read and may be any object, such as an entry of the envelope ID.
	Unread bool
	// By says what selects the object; empty if it is produced.
	By Selector
}

// A Selector is what selects objects that may be those of others.
type Selector string

// An object that a placement or an override selects may have no name: it is selected by labels.
const (
	ByPlacement Selector = "select"
	ByOverride  Selector = "override"
	ByRun       Selector = "roll out" // a staged run or an approval
	ByEviction  Selector = "evict from"
	ByBudget    Selector = "limit evictions from"
)

// A Reference is one of a kustomization to a file of the commit.
type Reference struct {
	Origin api.Origin
	Field  string
	To     string
}

// Check returns why files may not produce something together. Each of them can change it, so that it
// must be granted to each. Files without a grant do not count, since nobody may change them.
func (s Set) Check(files []string, products []Product) problem.List {
	var involved []*Grant
	for _, f := range files {
		if g := s.Of(f); g != nil && !slices.Contains(involved, g) {
			involved = append(involved, g)
		}
	}
	var all problem.List
	for _, p := range products {
		for _, g := range involved {
			if message := g.objection(p); message != "" {
				all = append(all, problem.Problem{Origin: p.Origin, Field: p.Field, Severity: problem.Error, Message: message})
			}
		}
	}
	return all
}

// CheckReference returns why a kustomization may not refer to a file: it is in another path, which does
// not share it.
func (s Set) CheckReference(r Reference) problem.List {
	from := s.Of(r.Origin.Path)
	if from == nil || from == s.Of(r.To) || s.Shared(r.To) {
		return nil
	}
	fix := "nobody may change that file, so that it cannot be shared: copy it"
	if to := s.Of(r.To); to != nil {
		fix = fmt.Sprintf("copy it, or add its directory to %s.sharedBases", to.Field)
	}
	return problem.List{{Origin: r.Origin, Field: r.Field, Severity: problem.Error,
		Message: fmt.Sprintf("%s is not in %s, and its own path does not share it; %s", r.To, from.name(), fix)}}
}

// unlimited reports whether the files may produce everything, and therefore also decide which files of
// others are read.
func (g *Grant) unlimited() bool {
	return slices.Contains(g.Namespaces, "*") && slices.Contains(g.Kinds, "*") && slices.Contains(g.Placements, "*")
}

func (g *Grant) name() string {
	if g.Path == "" {
		return "the path of the whole repository"
	}
	return "path " + g.Path
}

// rules are read from the top; the first that denies decides.
var rules = []struct {
	denies func(*Grant, Product) bool
	field  string
	value  func(Product) string
}{
	{func(g *Grant, p Product) bool { return !g.placement(p) }, "placements", func(p Product) string { return placementOf(p.ID) }},
	{func(g *Grant, p Product) bool { return !g.kind(p) }, "kinds", func(p Product) string { return kindOf(p.ID) }},
	{func(g *Grant, p Product) bool { return !g.namespace(p) }, "namespaces", func(p Product) string { n, _ := namespaceOf(p.ID); return n }},
}

// objection returns why something is not granted, with the fix; empty if it is granted.
func (g *Grant) objection(p Product) string {
	if p.Unread {
		if g.unlimited() {
			return ""
		}
		return fmt.Sprintf("this entry of %s cannot be read, so that it cannot be told whether files in %s may produce it; correct it", p.ID, g.name())
	}
	for _, r := range rules {
		if !r.denies(g, p) {
			continue
		}
		verb, value := cmp.Or(string(p.By), "produce"), r.value(p)
		if value == "" {
			return fmt.Sprintf("files in %s may not %s %s by labels, which can match those of others; write names, or add \"*\" to %s.%s", g.name(), verb, kindOf(p.ID), g.Field, r.field)
		}
		return fmt.Sprintf("files in %s may not %s %s; move it, or add %q to %s.%s", g.name(), verb, p.ID, value, g.Field, r.field)
	}
	return ""
}

func isPlacement(id api.ID) bool {
	return id.Group == api.PlacementGroup && (id.Kind == "ClusterResourcePlacement" || id.Kind == "ResourcePlacement")
}

func placementOf(id api.ID) string {
	return api.PlacementKey{Namespace: id.Namespace, Name: id.Name}.String()
}

func kindOf(id api.ID) string { return strings.TrimSuffix(id.Kind+"."+id.Group, ".") }

// namespaceOf returns the namespace that an object is or is in; ok is false for other cluster-scoped
// objects.
func namespaceOf(id api.ID) (name string, ok bool) {
	if id.GroupKind() == (api.GroupKind{Kind: "Namespace"}) {
		return id.Name, true
	}
	return id.Namespace, id.Namespace != ""
}

func (g *Grant) placement(p Product) bool {
	return !isPlacement(p.ID) || matches(g.Placements, placementOf(p.ID))
}

func (g *Grant) kind(p Product) bool {
	isNamespace := p.ID.GroupKind() == api.GroupKind{Kind: "Namespace"}
	switch {
	case isPlacement(p.ID), p.By == ByPlacement && isNamespace: // which another rule decides
		return true
	case len(g.Kinds) > 0:
		return matches(g.Kinds, kindOf(p.ID))
	default:
		return p.Namespaced && (p.ID.Group != api.PlacementGroup || p.ID.Kind != "ResourceOverride")
	}
}

func (g *Grant) namespace(p Product) bool {
	name, is := namespaceOf(p.ID)
	return !is || matches(g.Namespaces, name)
}

// matches reports whether a pattern matches a name. No pattern but "*" matches an empty name.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return p == "*" || ok && err == nil && name != ""
	})
}
