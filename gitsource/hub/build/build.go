// Package build builds the kustomizations of a commit.
//
// Read finds the kustomizations of a commit and every file and directory that they refer to.
// Target.Build then runs kustomize in memory on those files only, with limits on input, output
// and time: nothing is downloaded and no program is run. Each resulting object carries the file
// and line that it comes from, and error messages contain no secret values.
package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// buildLock is a lock that is held during a build: kustomize keeps schemas in global
// variables, so that only one build can run at a time.
var buildLock = make(chan struct{}, 1)

// maxPatchCopies limits the bytes that the copy operations of one JSON patch may add, as an API
// server does. The limit is global to the process; code that serves an API sets the same value.
const maxPatchCopies = 3 << 20

// mount is the directory in which a build finds the repository; the file system of the build
// has nothing above it.
const mount = "/repository"

// A builder builds one kustomization from its files.
type builder struct {
	Target
	texts map[string][]byte
	// positions are the positions of the documents in the files.
	positions map[string][]sourcePosition
	secrets   []string
	problems  problem.List
	// timedOut says that the build took too long, possibly because of the machine.
	timedOut bool
	// budget limits the memory of the objects. input limits the size of the files, each counted
	// once, and sizes has the size of each file.
	budget *limit.Budget
	input  *limit.Budget
	sizes  map[string]int64
}

// A Result is the result of a build.
type Result struct {
	// Problems are those of the build as a whole.
	Problems problem.List
	// Transient says that another attempt may succeed.
	Transient bool
	// Size is the approximate memory of the objects. End is the position of the last one, and
	// Cut says that the budget was used up there.
	Size int64
	End  api.Origin
	Cut  bool
	// Exceeded says that the objects are larger than limits.buildOutput and were not all visited.
	Exceeded bool
}

// A sourcePosition is the position of a document.
type sourcePosition struct {
	kind, name string
	line       int
	document   int
}

func (b *builder) fail(format string, args ...any) {
	b.problems = append(b.problems, problem.Problem{
		Origin: api.Origin{Path: b.File}, Severity: problem.Error, Message: fmt.Sprintf(format, args...),
	})
}

// Build reads the files of a kustomization and builds it. It calls visit with each object, as a
// document.Decoder returns it, and the report of its problems. Problems of the files are part of
// the result; an error means that they could not be read.
func (t Target) Build(budget *limit.Budget, visit func(r *document.Report, object any)) (*Result, error) {
	b := &builder{
		Target: t, texts: map[string][]byte{}, positions: map[string][]sourcePosition{},
		budget: budget, input: &limit.Budget{Limit: t.graph.limits.BuildInput}, sizes: map[string]int64{},
	}
	if err := b.readAll(); err != nil {
		return nil, err
	}
	out := &Result{End: api.Origin{Path: t.File}}
	if b.input.Exceeded() || b.inputSize(t.root.dir, map[string]int64{}) > b.graph.limits.BuildInput {
		b.fail("%s", inputExceeded(b.graph.limits))
	}
	if !b.problems.HasErrors() {
		objects, err := b.run()
		if err != nil {
			return nil, err
		}
		if objects != nil {
			b.collect(objects, out, visit)
		}
	}
	out.Problems, out.Transient = b.problems, b.timedOut
	return out, nil
}

func (b *builder) readAll() error {
	for _, k := range b.parts {
		for _, f := range k.reads() {
			if err := b.read(f); err != nil {
				return err
			}
			if b.input.Exceeded() {
				return nil
			}
		}
	}
	return nil
}

// read reads and validates a file before kustomize does, since kustomize's errors name neither
// file nor line.
func (b *builder) read(f reference) error {
	data, done := b.texts[f.path]
	if !done {
		var fault string
		var err error
		if data, fault, err = b.graph.tree.Read(f.path); err != nil {
			return err
		}
		if fault != "" {
			b.problems = append(b.problems, problem.Problem{Origin: api.Origin{Path: f.path}, Severity: problem.Error, Message: fault})
			return nil
		}
		b.texts[f.path] = data
		b.sizes[f.path] = int64(len(data))
		b.input.Charge(int64(len(data)))
	}
	if _, checked := b.positions[f.path]; checked || f.data {
		return nil
	}
	b.check(f.path, data)
	return nil
}

// inputSize is the memory for the files that a build of dir reads. A base counts once for each
// kustomization that refers to it, since kustomize reads it again each time.
func (b *builder) inputSize(dir string, known map[string]int64) int64 {
	if n, done := known[dir]; done {
		return n
	}
	var n int64
	for _, f := range b.graph.nodes[dir].reads() {
		n += b.sizes[f.path]
	}
	for _, next := range b.graph.nodes[dir].dirs {
		n = min(n+b.inputSize(next, known), b.graph.limits.BuildInput+1)
	}
	known[dir] = n
	return n
}

func (b *builder) check(name string, data []byte) {
	b.positions[name] = []sourcePosition{}
	parsed := document.Parse(name, data, b.graph.limits, b.input)
	b.sizes[name] += parsed.Size
	for _, p := range parsed.Problems {
		if p.Severity == problem.Error {
			p.Kustomization = b.File
			b.problems = append(b.problems, p)
		}
	}
	for _, doc := range parsed.Documents {
		b.recordPosition(name, doc)
	}
}

// recordPosition records the position of a document, and the values in it that are secret.
func (b *builder) recordPosition(name string, doc document.Document) {
	at := func(keys ...string) *yaml.Node {
		n, _ := document.Find(doc.Root, (*document.FieldPath)(nil).Child(keys...))
		if n == nil {
			return &yaml.Node{}
		}
		return n
	}
	kind := at("kind").Value
	b.positions[name] = append(b.positions[name], sourcePosition{kind, at("metadata", "name").Value, doc.LinesBefore + doc.Root.Line, doc.Number})
	if kind == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			visitScalars(at(field), func(value string) { b.secrets = append(b.secrets, value) })
		}
	}
}

func visitScalars(n *yaml.Node, visit func(string)) {
	if n.Kind == yaml.ScalarNode {
		visit(n.Value)
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 { // not the keys
			visitScalars(child, visit)
		}
	}
}

// run runs kustomize on a file system that has only the files that the kustomization refers to.
// An error means that the build could not start.
func (b *builder) run() (resmap.ResMap, error) {
	fsys := newBuildFiles()
	for name, data := range b.texts {
		fsys.add(path.Join(mount, name), data)
	}
	text, err := b.withOrigins()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", b.File, err)
	}
	fsys.add(path.Join(mount, b.File), text)
	if !acquireLock(b.graph.limits.BuildTime) {
		return nil, fmt.Errorf("build %s: another build has not ended for %s", b.File, b.graph.limits.BuildTime)
	}
	start, late := time.Now(), time.After(b.graph.limits.BuildTime)
	done := make(chan outcome, 1)
	go func() {
		result := kustomize(fsys, path.Join(mount, b.root.dir))
		<-buildLock
		done <- result
	}()
	select {
	case result := <-done:
		if time.Since(start) > b.graph.limits.BuildTime {
			break
		}
		if result.err != nil {
			b.fail("kustomize: %s", b.clean(result.err.Error()))
		}
		b.warnUnusedVariables()
		return result.objects, nil
	case <-late:
	}
	// A running build cannot be stopped, but it can be kept from reading more files.
	fsys.closed.Store(true)
	b.timedOut = true
	b.fail("the build took longer than %s; make it smaller, or raise limits.buildTime", b.graph.limits.BuildTime)
	return nil, nil
}

// acquireLock waits until no other build runs, for at most the time limit of one build. The
// build releases the lock when it ends, which may be after its time limit.
func acquireLock(timeout time.Duration) bool {
	select {
	case buildLock <- struct{}{}:
		return true
	default:
	}
	select {
	case buildLock <- struct{}{}:
		return true
	case <-time.After(timeout):
		return false
	}
}

// An outcome is what kustomize returned.
type outcome struct {
	objects resmap.ResMap
	err     error
}

func kustomize(fsys filesys.FileSystem, dir string) (result outcome) {
	defer func() {
		if p := recover(); p != nil {
			result = outcome{err: fmt.Errorf("it failed on this input: %v", p)}
		}
	}()
	atomic.StoreInt64(&jsonpatch.AccumulatedCopySizeLimit, maxPatchCopies)
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	objects, err := krusty.MakeKustomizer(options).Run(fsys, dir)
	return outcome{objects, err}
}

// warnUnusedVariables warns of variables without a reference. kustomize logs them without the
// file name.
func (b *builder) warnUnusedVariables() {
	for _, k := range b.parts {
		for _, v := range k.content.variables {
			reference := []byte("$(" + v.value + ")")
			used := false
			for _, text := range b.texts {
				used = used || bytes.Contains(text, reference)
			}
			if !used {
				b.problems = append(b.problems, problem.Problem{
					Origin: api.Origin{Path: k.file, Line: v.line}, Field: v.field, Severity: problem.Warning,
					Message: "nothing refers to this variable as " + string(reference) + "; remove it, or correct its name",
				})
			}
		}
	}
}

// withOrigins returns the kustomization file with the option to annotate each object with its
// origin.
func (b *builder) withOrigins() ([]byte, error) {
	spec := b.root.content.spec
	spec.BuildMetadata = append([]string{types.OriginAnnotations}, spec.BuildMetadata...)
	return json.Marshal(spec)
}
