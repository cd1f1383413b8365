package migration

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// Large repositories of teams that write kustomize alone have one of three forms, each with a base for each app.
//
// overlaysPerZone has directories such as apps-07/overlays/eu/ams, for the clusters of zones, and a tree of bases of single objects that
// one app refers to for all clusters.
func overlaysPerZone(apps int) (fstest.MapFS, map[string]int) {
	files, objects := fstest.MapFS{}, map[string]int{}
	zones := map[string][]string{"eu": {"ams", "bru"}, "us": {"nyc"}}
	for i := range apps {
		app := fmt.Sprintf("app-%03d", i)
		addBase(files, app)
		for zone, clusters := range zones {
			for _, c := range clusters {
				if i%5 == 4 && c == "nyc" {
					continue
				}
				overlay := app + "/overlays/" + zone + "/" + c
				write(files, overlay+"/kustomization.yaml", "resources: [../../../base, more]\nnamespace: "+app+"\n")
				write(files, overlay+"/more/kustomization.yaml", "resources: [own.yaml]\n")
				write(files, overlay+"/more/own.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}\n")
				objects[c] += 3
			}
		}
	}
	write(files, "dns/overlays/eu/kustomization.yaml", "resources: [zone.yaml]\n") // for all clusters of the zone
	write(files, "dns/overlays/eu/zone.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: zone, namespace: dns}}\n")
	objects["ams"], objects["bru"] = objects["ams"]+1, objects["bru"]+1
	for zone, clusters := range zones {
		for _, c := range clusters {
			text := "resources:\n"
			for i := range apps / 2 {
				dir := fmt.Sprintf("scope/base/core/namespaces/app-%03d", i)
				write(files, dir+"/kustomization.yaml", "resources: [namespace.yaml]\n")
				write(files, dir+"/namespace.yaml", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: app-%03d}}\n", i))
				text += fmt.Sprintf("- ../../../../%s\n", strings.TrimPrefix(dir, "scope/"))
				objects[c]++
			}
			write(files, "scope/overlays/prod/"+zone+"/"+c+"/kustomization.yaml", text)
		}
	}
	return files, objects
}

// environments has directories such as components/app-07/production/paris below those of environments, some of which have no clusters but a
// kustomization of their own, and remote bases.
func environments(apps int) (fstest.MapFS, map[string]int) {
	files, objects := fstest.MapFS{}, map[string]int{}
	envs := map[string][]string{"production": {"paris", "tokyo", "lima"}, "staging": {"oslo"}}
	for i := range apps {
		app := fmt.Sprintf("components/app-%03d", i)
		if i%7 == 0 {
			app = fmt.Sprintf("components/monitoring/app-%03d", i)
		}
		addBase(files, app)
		for env, clusters := range envs {
			if i%3 == 2 { // one for the environment
				write(files, app+"/"+env+"/kustomization.yaml", "resources: [../base]\nnamespace: team\n")
				for _, c := range clusters {
					objects[c] += 2
				}
				continue
			}
			base := "resources: [../../base]\nnamespace: team\n"
			more := 2
			if i%4 == 0 {
				base += fmt.Sprintf("namePrefix: of-%d-\n", i)
				base = strings.Replace(base, "]", ", 'https://example.com/org/app//config?ref=0123456789012345678901234567890123456789']", 1)
				more++
			}
			write(files, app+"/"+env+"/base/kustomization.yaml", base)
			write(files, app+"/"+env+"/empty-base/kustomization.yaml", "resources: []\n")
			for _, c := range clusters {
				write(files, app+"/"+env+"/"+c+"/kustomization.yaml", fmt.Sprintf("resources: [../base]\nnameSuffix: -of-%03d\n", i))
				objects[c] += more
			}
		}
	}
	return files, objects
}

// clustersAndApps has a directory for each cluster, which refers to the apps that it gets.
func clustersAndApps(apps int) (fstest.MapFS, map[string]int) {
	files, objects := fstest.MapFS{}, map[string]int{}
	for c := range 8 {
		text := "resources:\n"
		for i := range apps {
			app := fmt.Sprintf("apps/app-%03d", i)
			addBase(files, app)
			write(files, app+"/overlays/prod/kustomization.yaml", "resources: [../../base]\nnamespace: "+fmt.Sprintf("app-%03d", i)+"\n")
			text += "- ../../" + app + "/overlays/prod\n"
			objects[fmt.Sprintf("c%d", c)] += 2
		}
		write(files, fmt.Sprintf("clusters/c%d/kustomization.yaml", c), text)
	}
	return files, objects
}

func write(files fstest.MapFS, name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }

// addBase adds the base of an app, and what is no manifest beside it.
func addBase(files fstest.MapFS, app string) {
	name := app[strings.LastIndex(app, "/")+1:]
	write(files, app+"/base/kustomization.yaml", "resources: [web.yaml, service.yaml]\n")
	write(files, app+"/base/web.yaml", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}\n", name))
	write(files, app+"/base/service.yaml", fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {ports: [{port: 80}]}}\n", name))
	write(files, app+"/OWNERS.yaml", "reviewers: [a, b]\n")
	write(files, app+"/base/values.yaml", "replicas: 1\n")
	write(files, app+"/base/template.yaml", "{{ if .Values.x }}\na: b\n{{ end }}\n")
}

var remote = fstest.MapFS{
	"config/kustomization.yaml": {Data: []byte("resources: [a.yaml]\n")},
	"config/a.yaml":             {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: remote}}\n")},
}

var shapes = map[string]func(apps int) (fstest.MapFS, map[string]int){"overlays per zone": overlaysPerZone, "environments": environments, "clusters and apps": clustersAndApps}

// documents counts those of a proposal, with the lock file that gitfleet lock writes if there are remote bases.
func documents(p *Proposal) (n int) {
	n = 1
	for _, text := range p.Files {
		n += 1 + strings.Count(text, "\n---\n")
	}
	return n
}

// A repository of each form comes to life with at most five documents: each cluster gets every object that is meant for it, and nothing
// else.
func TestRepositoriesOfManyOverlaysComeToLife(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			files, want := shape(12)
			p, err := Find(files, Kustomize)
			if err != nil {
				t.Fatal(err)
			}
			if n := documents(p); n > 5 {
				t.Errorf("%d documents:\n%s", n, p.Files["fleet/overlays.yaml"])
			}
			s, err := hub.NewLoader(hub.Options{Bases: func(string, string) (fs.FS, error) { return remote, nil }}).Load(hub.Commit{}, p.With(files))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range s.Warnings {
				if w.Severity == problem.Failure {
					t.Error(w)
				}
			}
			if _, changed, err := p.Apart(s); changed || err != nil {
				t.Errorf("something cannot be built: %v", err)
			}
			if got := objectsByCluster(s); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("objects by cluster %v, want %v\n%s\nnot taken: %v", got, want, p.Files["fleet/overlays.yaml"], p.Left)
			}
		})
	}
}

// objectsByCluster returns how many objects the overlays of a commit build for each cluster.
func objectsByCluster(s *hub.Snapshot) map[string]int {
	all := map[string]int{}
	for _, c := range s.Clusters {
		for _, o := range s.Objects {
			if o.Overlay != nil {
				all[c.Name] += objectsFor(o.Overlay, c)
			}
		}
	}
	return all
}

func objectsFor(o *api.BuiltOverlay, c *hub.Cluster) (n int) {
	keys, _ := overlay.BuildsFor(o, overlay.Cluster{Name: c.Name, Labels: c.Labels})
	for _, key := range keys {
		n += len(o.Builds[key].Objects)
	}
	return n
}

// A directory with objects of the one that it is in is no overlay of its own, although no kustomization refers to it.
func TestDirectoriesInOverlaysAreNotBuiltTwice(t *testing.T) {
	files, want := environments(12)
	write(files, "components/app-001/production/paris/resources/kustomization.yaml", "resources: [../../base]\nnameSuffix: -of-001\n")
	p, err := Find(files, Kustomize)
	if err != nil {
		t.Fatal(err)
	}
	load := func() *hub.Snapshot {
		s, err := hub.NewLoader(hub.Options{Bases: func(string, string) (fs.FS, error) { return remote, nil }}).Load(hub.Commit{}, p.With(files))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if !slices.ContainsFunc(load().Warnings, func(w problem.Problem) bool { return w.Severity == problem.Failure }) {
		t.Fatal("nothing is built twice")
	}
	p, changed, err := p.Apart(load())
	if err != nil || !changed || !strings.Contains(fmt.Sprint(p.Left), "components/app-001/production/paris/resources: it has objects of components/app-001/production/paris") {
		t.Fatalf("%t, %v, %v", changed, err, p.Left)
	}
	if got := objectsByCluster(load())["paris"]; got != want["paris"] {
		t.Errorf("%d objects for paris, want %d", got, want["paris"])
	}
}

// The number of documents, and of lines about what is not taken, does not depend on the size of the repository.
func TestDocumentsOfLargeRepositories(t *testing.T) {
	for name, shape := range shapes {
		files, _ := shape(300)
		p, err := Find(files, Kustomize)
		if err != nil {
			t.Fatal(err)
		}
		if n := documents(p); n > 5 {
			t.Errorf("%s, %d files: %d documents", name, len(files), n)
		}
		if len(p.Left) > 1 {
			t.Errorf("%s: %d lines about what is not taken, want one for all bases: %q", name, len(p.Left), p.Left)
		}
	}
}

// kustomizationsOfFlux has a Kustomization of Flux for each app on each of three clusters, with the values of the cluster.
func kustomizationsOfFlux(apps int) (fstest.MapFS, map[string]int) {
	files, objects := fstest.MapFS{}, map[string]int{}
	for _, c := range []string{"lima", "oslo", "paris"} {
		write(files, "clusters/"+c+"/settings.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: flux-system}, data: {DOMAIN: "+c+".example}}\n")
		for i := range apps {
			app := fmt.Sprintf("app-%03d", i)
			write(files, "clusters/"+c+"/"+app+".yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: "+app+", namespace: flux-system}\n"+
				"spec:\n  path: ./apps/"+app+"\n  sourceRef: {kind: GitRepository, name: flux-system}\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}\n")
			objects[c]++
		}
	}
	for i := range apps {
		app := fmt.Sprintf("app-%03d", i)
		write(files, "apps/"+app+"/web.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+app+", namespace: web}, data: {host: 'www.${DOMAIN}'}}\n")
	}
	return files, objects
}

// A fleet of Flux of any size needs five documents as well. What cannot be built is in an overlay of its own, and the others do not wait
// for it; so is what has an object that another one has.
func TestFleetsOfFluxComeToLife(t *testing.T) {
	files, want := kustomizationsOfFlux(60)
	load := func(p *Proposal) *hub.Snapshot {
		t.Helper()
		s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{}, p.With(files))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p, err := Find(files, Flux)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Files); n > 5 || strings.Contains(p.Files["fleet/overlays.yaml"]+p.Files["fleet/placements.yaml"]+p.Files["fleet/vars.yaml"], "\n---\n") {
		t.Errorf("%d files:\n%s%s", n, p.Files["fleet/overlays.yaml"], p.Files["fleet/placements.yaml"])
	}
	if got := objectsByCluster(load(p)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("objects by cluster %v, want %v", got, want)
	}
	write(files, "apps/app-007/web.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: app-007, namespace: web}, data: {host: 1}}\n")
	write(files, "apps/app-009/web.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: app-008, namespace: web}, data: {host: '${DOMAIN}'}}\n")
	p, changed, err := p.Apart(load(p))
	if err != nil || !changed {
		t.Fatalf("%t, %v", changed, err)
	}
	overlays, placements := p.Files["fleet/overlays.yaml"], p.Files["fleet/placements.yaml"]
	if strings.Count(overlays, "kind: ClusterOverlay\n") != 3 || !strings.Contains(overlays, "  name: app-009\n") || !strings.Contains(placements, "name: all-clusters-to-correct\n") {
		t.Errorf("what cannot be built, or has objects of another one, is not apart:\n%s%s", overlays, placements)
	}
}
