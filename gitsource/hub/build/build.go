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

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// buildLock is a lock that is held during a build: kustomize keeps schemas in global
// variables, so that only one build can run at a time.
var buildLock = make(chan struct{}, 1)

// ErrBusy says that a build could not start, since another one has exceeded its time limit and
// still runs.
var ErrBusy = errors.New("another build has not ended")

// errEnded says that the commit cannot be read any more.
var errEnded = errors.New("the commit is not needed any more")

// maxPatchCopies limits the bytes that the copy operations of one JSON patch may add, as an API
// server does. The limit is global to the process; code that serves an API sets the same value.
const maxPatchCopies = 3 << 20

// Build reads the files of a kustomization and builds it. It calls visit with the value of each
// object, and the report of its problems, until they take more than maxSize bytes. transient says
// that another attempt may succeed. An error means that the files could not be read, or is ErrBusy.
func (t Target) Build(maxSize int64, visit func(r *document.Report, object any)) (out Built, transient bool, err error) {
	b := newBuilder(t)
	out.End.Path, out.Charts = t.File, b.rendered
	if err := b.readAll(); err != nil {
		return out, false, err
	}
	if b.inputLeft >= 0 && !b.problems.HasErrors() {
		if transient, err = b.renderCharts(); err != nil {
			return out, false, err
		}
	}
	if b.inputLeft < 0 || b.inputSize(t.root.dir, map[string]int64{}) > b.graph.limits.BuildInput {
		b.fail(t.File, "%s", inputExceeded(b.graph.limits))
	}
	b.checkPieces()
	if !b.problems.HasErrors() {
		var objects resmap.ResMap
		if objects, transient, err = b.run(); err != nil {
			return out, false, fmt.Errorf("build %s: %w", b.File, err)
		}
		if objects != nil {
			b.checkNames(objects)
			out.Uses = b.replacementUses(objects)
			b.collect(objects.Resources(), maxSize, &out, visit)
			if !out.Cut && !b.problems.HasErrors() {
				warnUnmatchedTargets(b)
				warnUnmatchedImages(b)
			}
		}
	}
	out.Problems = b.problems
	return out, transient, nil
}

func (b *builder) readAll() error {
	for _, k := range b.parts {
		for _, f := range k.reads() {
			if err := b.read(f); err != nil || b.inputLeft < 0 {
				return err
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
		if fault == "" && f.data && document.IsPointer(data) {
			fault = document.PointerFault
		}
		if fault != "" {
			b.fail(f.path, "%s", fault)
			return nil
		}
		b.texts[f.path] = data
		b.use(f.path, int64(len(data)))
	}
	if _, checked := b.positions[f.path]; checked && !f.schema || f.data {
		return nil
	}
	b.positions[f.path] = []sourcePosition{}
	file := document.Read(f.path, data, b.graph.limits, b.inputLeft, func(r *document.Report, value any) {
		if f.schema {
			checkSchema(r, value)
		}
		b.recordPosition(f.path, r)
		b.places[f.path] = append(b.places[f.path], placesOf(r)...)
	})
	b.use(f.path, file.Size)
	for _, p := range file.Problems.Errors() {
		p.Kustomization = b.File
		b.problems = append(b.problems, p)
	}
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
	for name, f := range b.chartFiles {
		if f.in.dir == dir {
			n += b.sizes[name]
		}
	}
	for _, next := range b.graph.nodes[dir].dirs {
		n = min(n+b.inputSize(next, known), b.graph.limits.BuildInput+1)
	}
	known[dir] = n
	return n
}

// recordPosition records the position of a document, and the values in it that are secret.
func (b *builder) recordPosition(file string, r *document.Report) {
	at := func(keys ...string) *yaml.Node {
		if n, _ := document.Find(r.Root, r.Field(keys...)); n != nil {
			return n
		}
		return &yaml.Node{}
	}
	kind := at("kind").Value
	b.positions[file] = append(b.positions[file], sourcePosition{kind, at("metadata", "name").Value, r.Origin.Line, r.Origin.Document})
	if kind == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			visitScalars(at(field), func(value *yaml.Node) { b.secrets = append(b.secrets, value.Value) })
		}
	}
}

// run runs kustomize on a file system that has only the files that the kustomization refers to. An
// error means that the build could not start.
func (b *builder) run() (objects resmap.ResMap, tooLong bool, err error) {
	changed, texts := b.marked(), b.markedTexts()
	built, failure, tooLong, err := b.kustomize(changed, texts)
	b.recordOrigins(built)
	if built != nil && b.dependsOnMarks() {
		b.markKey = ""
		built, failure, tooLong, err = b.kustomize(changed, b.texts)
		if built != nil && len(b.origins) != len(built.Resources()) { // the marks decided which objects there are
			b.recordOrigins(built)
		}
	}
	if failure != nil && (len(changed) > 0 || b.markKey != "") { // the message must be about what people have written
		b.uses, b.targets, b.marks, b.markKey = nil, nil, nil, ""
		built, failure, tooLong, err = b.kustomize(nil, b.texts)
		b.recordOrigins(built)
	}
	switch {
	case err != nil:
		return nil, false, err
	case tooLong:
		b.fail(b.position(), "the build took longer than %s; make it smaller, or raise limits.buildTime", b.graph.limits.BuildTime)
		return nil, true, nil
	case failure != nil:
		b.problems = append(b.problems, failureOf(b, failure.Error()))
	}
	warnUnusedVariables(b)
	return built, false, nil
}

// kustomize runs kustomize once, with some kustomization files that differ from those in the commit, and the texts of all files.
func (b *builder) kustomize(changed map[string]types.Kustomization, texts map[string][]byte) (objects resmap.ResMap, failure error, tooLong bool, err error) {
	fsys := newBuildFiles()
	for name, data := range texts {
		fsys.add(path.Join(mount, name), data)
	}
	add := func(file string, spec types.Kustomization) error {
		text, err := json.Marshal(spec)
		fsys.add(path.Join(mount, file), text)
		return err
	}
	for _, k := range b.parts {
		spec, isChanged := changed[k.file]
		if !isChanged {
			spec = k.spec
		}
		if len(k.charts) > 0 {
			spec = b.chartSpec(k, spec)
		}
		if len(k.generators) > 0 && b.markKey != "" {
			spec, isChanged = b.markGenerators(k, spec), true
		}
		if isChanged || k.generated || len(k.remotes)+len(k.charts) > 0 {
			err = errors.Join(err, add(k.file, spec))
		}
	}
	if err != nil {
		return nil, nil, false, err
	}
	limit := b.graph.limits.BuildTime
	if err := acquireLock(limit, b.graph.tree.Done()); err != nil {
		return nil, nil, false, err
	}
	start, late := time.Now(), time.After(limit)
	failed := make(chan error, 1)
	var built resmap.ResMap
	go func() {
		var err error
		run := func() { built, err = kustomize(fsys, path.Join(mount, b.root.dir)) }
		if b.replacesSchemas() {
			withoutSchemas(run)
		} else {
			run()
		}
		<-buildLock
		failed <- err
	}()
	select {
	case failure := <-failed:
		if time.Since(start) <= limit {
			return built, failure, false, nil
		}
	case <-late:
	case <-b.graph.tree.Done():
		fsys.closed.Store(true)
		return nil, nil, false, errEnded
	}
	// A running build cannot be stopped, but it can be kept from reading more files.
	fsys.closed.Store(true)
	return nil, nil, true, nil
}

// acquireLock waits until no other build runs, for at most the time limit of one build, or until done: the error is then ErrBusy, or
// errEnded. The build releases the lock when it ends, which may be after its time limit.
func acquireLock(timeout time.Duration, done <-chan struct{}) error {
	select {
	case <-done:
		return errEnded
	default:
	}
	select {
	case buildLock <- struct{}{}:
		return nil
	default:
	}
	select {
	case buildLock <- struct{}{}:
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("%w for %s", ErrBusy, timeout)
	case <-done:
		return errEnded
	}
}

func kustomize(fsys filesys.FileSystem, dir string) (objects resmap.ResMap, err error) {
	defer func() {
		if p := recover(); p != nil {
			objects, err = nil, fmt.Errorf("it failed on this input: %v", p)
		}
	}()
	atomic.StoreInt64(&jsonpatch.AccumulatedCopySizeLimit, maxPatchCopies)
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	return krusty.MakeKustomizer(options).Run(fsys, dir)
}

// warnUnusedVariables warns of variables without a reference. kustomize logs them without the
// file name.
func warnUnusedVariables(b *builder) {
	for _, k := range b.parts {
		for _, v := range k.variables {
			reference := "$(" + v.value + ")"
			used := false
			for _, text := range b.texts {
				used = used || bytes.Contains(text, []byte(reference))
			}
			if !used {
				b.problems = append(b.problems, problem.Problem{
					Origin: api.Origin{Path: k.file, Line: v.line}, Field: v.field, Severity: problem.Warning,
					Message: "nothing refers to this variable as " + reference + "; remove it, or correct its name",
				})
			}
		}
	}
}
