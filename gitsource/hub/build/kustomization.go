package build

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// FileNames are the names of kustomization files. If there are several, kustomize reads the
// first one.
var FileNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// A kustomization is one directory with a kustomization file, and its references. They are
// resolved in the commit before anything is built, so that a build never needs the network.
type kustomization struct {
	dir, file string
	spec      types.Kustomization
	// mentions are the references as they are written, and files and dirs what they refer to,
	// relative to the root of the repository.
	mentions []mention
	files    []reference
	dirs     []string
	// remotes are those of dirs that are in other repositories.
	remotes []remoteDir
	// charts are the entries of helmCharts, and those of generators that are charts, which inflators lists as they are written.
	charts    []*helmChart
	inflators []string
	// locked says that the lock file decides what some of them are.
	locked bool
	// generators are the positions of its generators, pluginObjects those of generators that are plugins, variables the names in the
	// field vars, and images those in the field images.
	generators    []sourcePosition
	pluginObjects []pluginObject
	variables     []mention
	images        []mention
	// unknownOrder is the order of sortOptions and what is wrong with it; nil if kustomize knows it. It is read only where a build begins.
	unknownOrder *mention
	// targets are the positions of the targets of its patches.
	targets []mention
	// selectorFaults are the selectors in them that are none, with what is wrong.
	selectorFaults []mention
	// literals are the literal values of secret generators.
	literals []string
	// problems are those of the files, own of them, and those that follow from the other kustomizations.
	problems problem.List
	own      int
	// size is the approximate memory of the file, and of its files of plugins.
	size int64
	// generated says that the file does not exist.
	generated bool
}

// A pluginObject is an object that a plugin generates, at the position of the plugin.
type pluginObject struct {
	path string
	sourcePosition
}

// A reference is a file that a kustomization reads.
type reference struct {
	path string
	// data says that the file is copied and not parsed, schema that it has an OpenAPI schema, values that it has those of a chart, and
	// resource that its documents are objects of the build.
	data, schema, values, resource bool
}

// reads returns all files that a build reads for the kustomization. The kustomization file comes
// first, as data, since it was parsed before, unless it is generated.
func (k *kustomization) reads() []reference {
	if k.generated {
		return k.files
	}
	return append([]reference{{path: k.file, data: true}}, k.files...)
}

func (k *kustomization) add(severity problem.Severity, line int, field, format string, args ...any) {
	at := api.Origin{Path: k.file, Line: line}
	if k.generated {
		at, field = api.Origin{Path: k.dir}, ""
	}
	if len(k.problems) <= document.MaxProblems { // a list of files can be very long
		k.problems = append(k.problems, problem.Problem{
			Origin: at, Field: field, Severity: severity, Message: fmt.Sprintf(format, args...),
		})
	}
}

// fail reports a problem of a reference.
func (k *kustomization) fail(m mention, format string, args ...any) {
	k.add(problem.Error, m.line, m.field, format, args...)
}

// failAt reports a problem at the reference to a directory.
func (k *kustomization) failAt(dir, format string, args ...any) {
	i := slices.IndexFunc(k.mentions, func(m mention) bool { return path.Join(k.dir, m.value) == dir })
	k.fail(k.mentions[i], format, args...)
}

func inputExceeded(limits limit.Limits) string {
	return fmt.Sprintf("the build reads more than %s, each file counted as often as it is read; refer to each base fewer times, write fewer YAML aliases, or raise limits.buildInput", limit.Size(limits.BuildInput))
}

// A mention is a reference in a kustomization file that is not resolved yet.
type mention struct {
	field string
	line  int
	value string
	kind  mentionKind // what it may refer to
}

type mentionKind int

const (
	fileOrDirectory mentionKind = iota
	componentDirectory
	textFile   // a file that kustomize parses
	dataFile   // a file that kustomize copies
	pluginFile // a file with generators or transformers
	schemaFile // a file with an OpenAPI schema
	valuesFile // a file with values of a chart
)

// scheme matches the beginning of a URL, and user the beginning of an SSH address.
var (
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	user   = regexp.MustCompile(`^[A-Za-z0-9._-]+@`)
)

// isRemote reports whether kustomize might treat a reference as the URL of a file. It errs
// towards true.
func isRemote(s string) bool {
	s = strings.TrimSpace(s)
	return strings.Contains(s, "://") || scheme.MatchString(s)
}

// isRepository reports whether kustomize might treat a reference as a repository to clone.
func (m mention) isRepository() bool {
	switch m.kind {
	case textFile, dataFile, schemaFile, valuesFile:
		return false
	}
	lower := strings.ToLower(strings.TrimSpace(m.value))
	return strings.HasPrefix(lower, "github.com") || user.MatchString(lower)
}

func modeText(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeIrregular != 0:
		return "a submodule"
	}
	return "neither a file nor a directory"
}

func isBelow(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// A helmChart is an entry of helmCharts, or a generator of kind HelmChartInflationGenerator.
type helmChart struct {
	types.HelmChart
	// field and line are the entry in the kustomization, and file is the file that has the fields of the chart.
	field string
	line  int
	file  string
	// home is the directory of charts, relative to the kustomization, and homeField where it is set.
	home, homeField string
	// dir is the directory of the chart, and remote says that it is not in the repository.
	dir    string
	remote bool
	// values is the path in valuesFile, empty for the values.yaml of the chart, and additional those in additionalValuesFiles.
	values     string
	additional []string
}

// A remoteDir is a directory of a remote base that a kustomization refers to.
type remoteDir struct {
	// value is the reference as it is written, and line its line.
	value string
	line  int
	// root is where the repository is found, and dir the directory.
	root, dir string
}

// A sourcePosition is the position of a document.
type sourcePosition struct {
	kind, name string
	line       int
	document   int
}

func (k *kustomization) isComponent() bool { return k.spec.Kind == types.ComponentKind }

// child returns the value of a key of a mapping; nil if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// A rendering is what a chart of a kustomization becomes in a namespace.
type rendering struct {
	// key identifies the rendering within a commit.
	key       string
	files     []renderedFile
	problems  problem.List
	steps     int64
	transient bool
}

// A renderedFile is the output of one template of a chart, or a definition, without what is not placed.
type renderedFile struct {
	// name is that of the file that kustomize reads, and source the file of the chart.
	name, source string
	text         []byte
	positions    []sourcePosition
	places       []place
}

// A place is where the mark of an object is inserted in the text of its file: at the beginning of its annotations, or of its metadata
// if it has none.
type place struct {
	// objectLine and document are the position of the object.
	objectLine, document int
	// line and column are the position of the mapping: of its brace, or of its first key.
	line, column int
	annotations  bool // the mapping is that of the annotations
	empty        bool
}
