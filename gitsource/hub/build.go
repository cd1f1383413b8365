package hub

import (
	"bytes"
	"encoding/json"
	"errors"
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

	"github.com/gitfleet/gitfleet/placement/api"
)

// kustomize is in use by one build at a time: it keeps schemas in global
// variables.
var kustomizing = make(chan struct{}, 1)

// patchCopies is how many bytes the copy operations of one JSON patch may add, as
// for an API server. The limit belongs to the whole process; whoever serves an API
// sets it to the same.
const patchCopies = 3 * mib

// mount is where a build sees the repository, so that nothing above it exists.
const mount = "/repository"

// A builder makes the objects of one kustomization, from files it is given.
type builder struct {
	limits Limits
	// file is the kustomization that is built.
	file  string
	parts []*kustomization
	texts map[string][]byte
	// places are where the documents of the files stand.
	places   map[string][]place
	secrets  []string
	problems Problems
	// late says that the build took too long, which may have been the machine.
	late bool
	// spending is what the objects may take, and input how much memory the files
	// take that were read, each counted once; sizes has it of each file.
	spending *budget
	input    *budget
	sizes    map[string]int64
}

// A place is where a document stands.
type place struct {
	kind, name string
	line       int
	document   int
}

func (b *builder) fail(format string, args ...any) {
	b.problems = append(b.problems, Problem{
		Origin: api.Origin{Path: b.file}, Severity: Error, Message: fmt.Sprintf(format, args...),
	})
}

// build reads the files of a kustomization and builds it. What goes wrong in
// them is part of the result; an error means that they could not be read.
func build(t *tree, dir string, parts []*kustomization, file string, spending *budget) (*parsed, error) {
	b := &builder{
		limits: t.limits, file: file, parts: parts, texts: map[string][]byte{}, places: map[string][]place{},
		spending: spending, input: &budget{limit: t.limits.BuildInput}, sizes: map[string]int64{},
	}
	if err := b.readAll(t); err != nil {
		return nil, err
	}
	out := &parsed{end: api.Origin{Path: file}}
	if b.input.exceeded() || b.reads(dir, map[string]int64{}) > b.limits.BuildInput {
		b.fail("%s", inputExceeded(b.limits))
	}
	if !hasErrors(b.problems) {
		objects, err := b.run(dir)
		if err != nil {
			return nil, err
		}
		if objects != nil {
			b.collect(objects, dir, out)
		}
	}
	out.problems, out.passing = b.problems, b.late
	return out, nil
}

func (b *builder) readAll(t *tree) error {
	for _, k := range b.parts {
		for _, f := range append([]reference{{path: k.file}}, k.files...) {
			f.data = f.data || f.path == k.file // which has been checked already
			if err := b.read(t, f); err != nil {
				return err
			}
			if b.input.exceeded() {
				return nil
			}
		}
	}
	return nil
}

// read also finds the faults of a file, since kustomize says neither file nor
// line.
func (b *builder) read(t *tree, f reference) error {
	data, done := b.texts[f.path]
	if !done {
		var err error
		data, err = t.read(f.path)
		if tooLarge := (*errTooLarge)(nil); errors.As(err, &tooLarge) {
			b.problems = append(b.problems, Problem{Origin: api.Origin{Path: f.path}, Severity: Error, Message: err.Error()})
			return nil
		}
		if err != nil {
			return err
		}
		b.texts[f.path] = data
		b.sizes[f.path] = int64(len(data))
		b.input.charge(int64(len(data)))
	}
	if _, checked := b.places[f.path]; checked || f.data {
		return nil
	}
	b.check(f.path, data)
	return nil
}

func inputExceeded(limits Limits) string {
	return fmt.Sprintf("the build reads more than %s, each file counted as often as it is read; refer to each base fewer times, write fewer YAML aliases, or raise limits.buildInput", bytesText(limits.BuildInput))
}

// reads is how much memory the files take that a build of dir reads: kustomize
// reads a base anew for each kustomization that refers to it.
func (b *builder) reads(dir string, known map[string]int64) int64 {
	if n, done := known[dir]; done {
		return n
	}
	var n int64
	for _, k := range b.parts {
		if k.dir != dir {
			continue
		}
		n += b.sizes[k.file]
		for _, f := range k.files {
			n += b.sizes[f.path]
		}
		for _, next := range k.dirs {
			n = min(n+b.reads(next, known), b.limits.BuildInput+1)
		}
	}
	known[dir] = n
	return n
}

func (b *builder) check(name string, data []byte) {
	b.places[name] = []place{}
	parsed := parseSyntax(name, data, b.limits, b.input)
	b.sizes[name] += parsed.size
	for _, p := range parsed.problems {
		if p.Severity == Error {
			p.Kustomization = b.file
			b.problems = append(b.problems, p)
		}
	}
	for _, doc := range parsed.documents {
		b.note(name, doc)
	}
}

// note remembers where a document stands, and what is secret in it.
func (b *builder) note(name string, doc textDocument) {
	at := func(keys ...string) *yaml.Node {
		n, _ := find(doc.root, (*fieldPath)(nil).child(keys...))
		if n == nil {
			return &yaml.Node{}
		}
		return n
	}
	kind := at("kind").Value
	b.places[name] = append(b.places[name], place{kind, at("metadata", "name").Value, doc.before + doc.root.Line, doc.number})
	if kind == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			eachScalar(at(field), func(value string) { b.secrets = append(b.secrets, value) })
		}
	}
}

func eachScalar(n *yaml.Node, visit func(string)) {
	if n.Kind == yaml.ScalarNode {
		visit(n.Value)
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 { // not the keys
			eachScalar(child, visit)
		}
	}
}

// run builds on a file system that holds what the kustomization mentions, and
// nothing else. An error means that it could not be begun.
func (b *builder) run(dir string) (resmap.ResMap, error) {
	fsys := newBuildFiles()
	for name, data := range b.texts {
		if name == b.file {
			data = b.withOrigins(dir, data)
		}
		fsys.add(path.Join(mount, name), data)
	}
	if !enter(b.limits.BuildTime) {
		return nil, fmt.Errorf("build %s: another build has not ended for %s", b.file, b.limits.BuildTime)
	}
	start, late := time.Now(), time.After(b.limits.BuildTime)
	done := make(chan buildResult, 1)
	go func() { done <- alone(func() buildResult { return kustomize(fsys, path.Join(mount, dir)) }) }()
	select {
	case result := <-done:
		if time.Since(start) > b.limits.BuildTime {
			break
		}
		if result.err != nil {
			b.fail("kustomize: %s", b.clean(result.err.Error()))
		}
		b.warnUnused()
		return result.objects, nil
	case <-late:
	}
	// Nothing can stop it if it still runs, but it finds no more files.
	fsys.closed.Store(true)
	b.late = true
	b.fail("the build took longer than %s; make it smaller, or raise limits.buildTime", b.limits.BuildTime)
	return nil, nil
}

// alone ends the turn that enter began before anybody hears of the result.
func alone(build func() buildResult) buildResult {
	defer func() { <-kustomizing }()
	return build()
}

// enter waits for its turn, for at most as long as one build may take.
func enter(patience time.Duration) bool {
	select {
	case kustomizing <- struct{}{}:
		return true
	default:
	}
	select {
	case kustomizing <- struct{}{}:
		return true
	case <-time.After(patience):
		return false
	}
}

type buildResult struct {
	objects resmap.ResMap
	err     error
}

func kustomize(fsys filesys.FileSystem, dir string) (result buildResult) {
	defer func() {
		if p := recover(); p != nil {
			result = buildResult{err: fmt.Errorf("it failed on this input: %v", p)}
		}
	}()
	atomic.StoreInt64(&jsonpatch.AccumulatedCopySizeLimit, patchCopies)
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	objects, err := krusty.MakeKustomizer(options).Run(fsys, dir)
	return buildResult{objects, err}
}

// warnUnused warns of variables that nothing refers to. kustomize itself logs them
// without naming the file.
func (b *builder) warnUnused() {
	for _, k := range b.parts {
		for _, v := range k.text.variables {
			reference := []byte("$(" + v.value + ")")
			used := false
			for _, text := range b.texts {
				used = used || bytes.Contains(text, reference)
			}
			if !used {
				b.problems = append(b.problems, Problem{
					Origin: api.Origin{Path: k.file, Line: v.line}, Field: v.field, Severity: Warning,
					Message: "nothing refers to this variable as " + string(reference) + "; remove it, or correct its name",
				})
			}
		}
	}
}

// withOrigins asks kustomize to say of each object where it came from.
func (b *builder) withOrigins(dir string, data []byte) []byte {
	for _, k := range b.parts {
		if k.dir != dir {
			continue
		}
		spec := k.text.spec
		spec.BuildMetadata = append([]string{types.OriginAnnotations}, spec.BuildMetadata...)
		if text, err := json.Marshal(spec); err == nil {
			return text
		}
	}
	return data
}
