package hub

import (
	"errors"
	"maps"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// build builds the kustomizations that have no problems.
func (l *Loader) build(g *build.Graph, a *assembly) error {
	if n := l.opts.Limits.Builds; len(g.Roots) > n && !a.full {
		a.full = true
		a.problem(problem.Error, api.Origin{Path: g.Target(g.Roots[n]).File}, "", "the commit has more than %d kustomizations to build; split the repository, or raise limits.builds", n)
	}
	for _, dir := range g.Roots {
		if a.full {
			return nil
		}
		t := g.Target(dir)
		if a.grants.Shared(t.File) {
			t.Drop("it is a shared base, which is deployed only by kustomizations that refer to it")
			continue
		}
		p, err := l.buildTarget(t, a, buildOptions{})
		if err != nil || a.full {
			return err
		}
		if !t.Valid() || p.Problems.HasErrors() {
			base, err := t.IsOnlyBase()
			if err != nil {
				return err
			}
			if base {
				t.Drop("by itself it cannot be built, since its objects have no namespace")
				a.addUnused(p)
				continue
			}
			t.Hint()
		}
		if a.add(p); t.Valid() {
			a.sources[t.File] = t.Sources()
		}
	}
	a.unused = g.Unused()
	return nil
}

// buildOptions say what a kustomization is built for. The zero value is for the hub.
type buildOptions struct {
	// overlay says that it is the content of an overlay, and namespace is that of its objects without one.
	overlay   bool
	namespace string
	// templates says that variables are replaced in what is built, for each cluster.
	templates bool
}

// key identifies the options in the cache.
func (o buildOptions) key() string {
	switch {
	case !o.overlay:
		return ""
	case o.templates:
		return "/" + o.namespace + "$"
	}
	return "/" + o.namespace
}

// buildTarget builds a kustomization, unless the result is cached. The result is empty if the
// kustomization has problems.
func (l *Loader) buildTarget(t build.Target, a *assembly, o buildOptions) (*parsed, error) {
	if !t.Valid() {
		return &parsed{}, nil
	}
	fingerprint, err := t.Fingerprint()
	if err != nil {
		return nil, err
	}
	key := cacheKey{t.File, fingerprint, true, o.key()}
	p := l.cache[key]
	if p == nil {
		l.built++
		p = &parsed{}
		visit := p.addItems
		if p.forClusters = o.overlay; o.templates {
			visit = p.addTemplatesIn(o.namespace)
		} else if o.overlay {
			visit = p.addItemsIn(o.namespace)
		}
		var built build.Built
		built, p.transient, err = t.Build(a.rest(), visit)
		if errors.Is(err, build.ErrBusy) && a.timedOut {
			a.full = true // the build that timed out, for which the commit is refused, still runs
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		p.File, p.uses, p.charts = built.File, built.Uses, built.Charts
		l.plain.markSecrets(p, t.File, t.Sources()...)
	}
	a.timedOut = a.timedOut || p.transient
	l.keep(key, p)
	l.countCharts(a, t, p)
	return p, nil
}

// countCharts counts what the charts of a kustomization take to render, each rendering once.
func (l *Loader) countCharts(a *assembly, t build.Target, p *parsed) {
	for key, steps := range p.charts {
		if _, counted := a.rendered[key]; !counted {
			a.rendered[key] = steps
			a.chartSteps += steps
		}
	}
	if a.chartSteps > l.chartSteps || len(a.rendered) > a.limits.Builds {
		a.full = true
		a.problem(problem.Error, api.Origin{Path: t.File}, "", "up to here the kustomizations of the commit render more than %d charts, or take more than %d steps for that; split the repository, or render fewer charts", a.limits.Builds, l.chartSteps)
	}
}

// A cacheKey identifies a file by its path, which is the origin of its objects, and the hash of
// its content; or a build by its kustomization file and all that it reads, and the namespace of
// objects without one if it is for an overlay.
type cacheKey struct {
	path, hash string
	build      bool
	overlay    string
}

// trimCache keeps what the last two loads used, so that alternating between two commits is cheap,
// or what the last one used, if both exceed the memory limit of a commit.
func (l *Loader) trimCache() {
	l.loads++
	maps.DeleteFunc(l.overlays, func(_ *item, known *knownOverlay) bool { return known.used < l.loads-2 })
	keep := func(loads int) (size int64) {
		for key, p := range l.cache {
			if p.used < l.loads-loads {
				delete(l.cache, key)
			}
			size += p.Size
		}
		return size
	}
	if keep(2) > l.opts.Limits.CommitSize {
		keep(1)
	}
}

// keep records that this load uses a result, and caches it unless it is incomplete.
func (l *Loader) keep(key cacheKey, p *parsed) {
	if p.used == 0 {
		p.share(l.schemas)
	}
	p.used = l.loads
	if !p.Cut && !p.transient {
		l.cache[key] = p
	}
}
