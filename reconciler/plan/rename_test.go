package plan

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A rename is found in each plan until it is recorded in the ledger.
func TestARenameIsFoundUntilItIsRecorded(t *testing.T) {
	s := newScene(t)
	s.commit("v1", nil, []byte("clusters a\nnamespace web\nplace old of web\n"))
	s.do([]string{"seen", "a"})
	s.resolve()
	s.commit("v2", nil, []byte("clusters a\nnamespace web\nplace new of web\n"))
	first := describe(Resolve(s.in))
	again := Resolve(s.in)
	if len(again.Renames) != 1 || describe(again) != first {
		t.Errorf("first:\n%s\nsecond, with the renames %v:\n%s", first, again.Renames, describe(again))
	}
}

// renameScene returns a fleet of one cluster that holds the placements of a commit v1, and has a
// commit v2 as its head.
func renameScene(t *testing.T, before, after string, allowed ...string) *scene {
	t.Helper()
	const objects = "clusters a\nnamespace web\nconfigmap web/one\nnamespace shop\nnamespace api\nwidget shop/one\n"
	s := newScene(t)
	s.commit("v1", nil, []byte(objects+before))
	for _, step := range []string{"seen a", "plan", "done", "plan"} {
		s.do(strings.Fields(step))
	}
	s.commit("v2", allowed, []byte(objects+after))
	return s
}

// renamesOf lists the renames of a plan and the placements for which a rename is uncertain.
func renamesOf(p *Plan) string {
	var out []string
	for _, r := range p.Renames {
		out = append(out, r.From.Name+">"+r.To.Name)
	}
	for pl := range p.Placements.Values() {
		if pl.Unclear != "" {
			out = append(out, pl.Key.Name+"?")
		}
	}
	return strings.Join(out, " ")
}

// A new placement that selects an object of exactly one deleted placement is that placement under
// a new name. With more candidates, the rename is uncertain.
func TestRenames(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		allowed       []string
		want          string
	}{
		"renamed":                                         {"place old of web\n", "place new of web\n", nil, "old>new"},
		"renamed, with other objects":                     {"place old of web,shop\n", "place new of web,api\n", nil, "old>new"},
		"no common object":                                {"place old of web\n", "place new of shop\n", nil, ""},
		"the old one stays":                               {"place old of web\n", "place old of web\nplace new of web\n", nil, ""},
		"the new one existed":                             {"place old of web\nplace new of shop\n", "place new of web\n", nil, ""},
		"only deleted":                                    {"place old of web\n", "", nil, ""},
		"two renames":                                     {"place old of web\nplace older of shop\n", "place new of web\nplace newer of shop\n", nil, "old>new older>newer"},
		"exchanged names":                                 {"place old of web\nplace new of shop\n", "place new of web\nplace old of shop\n", nil, ""},
		"split in two":                                    {"place old of web,shop\n", "place new of web\nplace newer of shop\n", nil, "new? newer? old?"},
		"two merged":                                      {"place old of web\nplace older of shop\n", "place new of web,shop\n", nil, "new? old? older?"},
		"it selects nothing":                              {"place old of web\n", "place new of gone\n", nil, "new? old?"},
		"it is invalid":                                   {"place old of web\n", "place new of web broken\n", nil, "new? old?"},
		"two candidates, one is invalid":                  {"place old of web\n", "place new of web\nplace newer of web broken\n", nil, "old>new"},
		"on no cluster before":                            {"place old of web on b\n", "place new of web\n", nil, ""},
		"split, and the deletion is allowed":              {"place old of web,shop\n", "place new of web\nplace newer of shop\n", []string{"crp/old"}, ""},
		"renamed, although the deletion is allowed":       {"place old of web\n", "place new of web\n", []string{"crp/old"}, "old>new"},
		"merged, and the deletion of one is allowed":      {"place old of web\nplace older of shop\n", "place new of web,shop\n", []string{"older"}, "old>new"},
		"it selects nothing, and the deletion is allowed": {"place old of web\n", "place new of gone\n", []string{"*"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := renamesOf(renameScene(t, test.before, test.after, test.allowed...).resolve()); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
		})
	}
}

// A placement is not the new name of a ResourcePlacement of another namespace, nor of a
// ClusterResourcePlacement.
func TestRenamesStayInTheirNamespace(t *testing.T) {
	for namespace, want := range map[string]int{"web": 1, "shop": 0, "": 0} {
		s := newScene(t)
		s.commit("v1", nil, []byte("clusters a\nnamespace web\nconfigmap web/one\nplace old of web\n"))
		spec := func(namespace, name string) {
			for _, p := range s.in.InForce.Placements {
				p.Key = api.PlacementKey{Namespace: namespace, Name: name}
				if namespace != "" {
					p.Spec.ResourceSelectors = []api.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap", Name: "one"}}
				}
			}
		}
		spec("web", "old")
		for _, step := range []string{"seen a", "plan", "done", "plan"} {
			s.do(strings.Fields(step))
		}
		s.commit("v2", nil, []byte("clusters a\nnamespace web\nnamespace shop\nconfigmap web/one\nconfigmap shop/one\nplace new of web\n"))
		spec(namespace, "new")
		if got := len(s.resolve().Renames); got != want {
			t.Errorf("%d renames from the namespace web to %q, want %d", got, namespace, want)
		}
	}
}

// The message about an uncertain rename names the candidates with their positions, and says what to
// do.
func TestUncertainRenameMessages(t *testing.T) {
	const (
		end    = ", bring crp/old back, or allow its deletion with the trailer \"Gitfleet-Allow-Delete: crp/old\""
		middle = ". It keeps what it holds, and nothing new is placed. "
	)
	for name, test := range map[string]struct {
		before, after string
		steps         []string
		want          string
	}{
		"two candidates": {"place old of web,shop\n", "place new of web\nplace newer of shop\n", nil,
			"crp/old is gone from Git, and crp/new (placement-new.yaml:1) and crp/newer (placement-newer.yaml:1) select what it holds: each of them may be its new name" + middle + "Let only one of them select it" + end},
		"two deleted ones": {"place old of web\nplace older of shop\n", "place new of web,shop\n", nil,
			"crp/old is gone from Git, and crp/new (placement-new.yaml:1) selects what it holds and what crp/older holds, which is gone as well" + middle + "Let a new placement select what only one of them holds" + end},
		"it selects nothing": {"place old of web\n", "place new of gone\n", nil,
			"crp/old is gone from Git, and crp/new (placement-new.yaml:1) may be its new name, but selects nothing" + middle + "Let exactly one new placement select what it holds" + end},
		"it is invalid": {"place old of web\n", "place new of web broken\n", nil,
			"crp/old is gone from Git, and crp/new (placement-new.yaml:1) may be its new name, but its resource selectors are invalid" + middle + "Let exactly one new placement select what it holds" + end},
		"the content is being loaded": {"place old of web\n", "place new of web\n", []string{"restart"},
			"crp/old is gone from Git, and crp/new (placement-new.yaml:1) may be its new name, but commit v1, which its content comes from, is still being loaded" + middle + "Let exactly one new placement select what it holds" + end},
		"the content is lost": {"place old of web\n", "place new of shop\n", []string{"restart", "lose v1"},
			"crp/old is gone from Git, and crp/new (placement-new.yaml:1) may be its new name, but commit v1, which its content comes from, cannot be loaded" + middle + "Let exactly one new placement select what it holds" + end},
	} {
		t.Run(name, func(t *testing.T) {
			s := renameScene(t, test.before, test.after)
			for _, step := range test.steps {
				s.do(strings.Fields(step))
			}
			p := s.resolve()
			old := p.Placement(api.PlacementKey{Name: "old"})
			if old.Unclear != test.want || old.On("a").Waits != test.want || !old.On("a").work.Keep {
				t.Errorf("got  %s\nwant %s", old.Unclear, test.want)
			}
			if placed := p.Placement(api.PlacementKey{Name: "new"}); !placed.Pending || len(placed.Clusters) > 0 || len(placed.Warnings) == 0 {
				t.Errorf("the new placement: %+v", placed)
			}
		})
	}
}

// An offline plan that knows the objects of a placement does not need the commits that they came
// from.
func TestOwnedObjectsOfAnOfflinePlan(t *testing.T) {
	old := api.PlacementKey{Name: "old"}
	for name, test := range map[string]struct {
		ids  []api.ID
		want string
	}{
		"a common object":  {[]api.ID{{Kind: "Namespace", Name: "web"}}, "old>new"},
		"no common object": {[]api.ID{{Kind: "Namespace", Name: "api"}}, ""},
		"no objects":       {[]api.ID{}, ""},
	} {
		s := renameScene(t, "place old of shop\n", "place new of web\n")
		s.do([]string{"restart"})
		s.in.Owned = map[api.PlacementKey][]api.ID{old: test.ids}
		if got := renamesOf(Resolve(s.in)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// If it panics to find out what a deleted placement holds, the rename is uncertain, and nothing is
// removed.
func TestPanicMakesARenameUncertain(t *testing.T) {
	s := renameScene(t, "place old of web\n", "place new of web\n")
	old, placed := api.PlacementKey{Name: "old"}, api.PlacementKey{Name: "new"}
	s.in.Memo.contents[old] = []*prepared{{}} // without a renderer
	p := Resolve(s.in)
	if why := p.Placement(placed).Unclear; !strings.Contains(why, "because of an internal error it is not known what it holds") {
		t.Errorf("the rename is uncertain because %q", why)
	}
	if w := p.Placement(old).On("a").work; !w.Keep || w.Remove || p.Placement(old).InternalError == "" {
		t.Errorf("the work is %+v", w)
	}
}
