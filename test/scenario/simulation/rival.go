package simulation

import (
	"math/rand/v2"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

const lawForeign = "on a cluster that another fleet of the same name holds nothing is done until a person adopts it"

// ourFleet is the fleet of the daemon.
var ourFleet = ledger.Fleet{Name: "fleet", ID: "00000000-ours", Source: "https://git.example/fleet"}

// rivals are the IDs of other fleets of the same name, from another repository.
var rivals = []string{"11111111-theirs", "22222222-theirs"}

// compete makes another fleet come to a cluster or leave it, or adopts it.
func (w *world) compete(r *rand.Rand) {
	w.happen(func() {
		h := w.host(r)
		for _, name := range keys(w.hosts) {
			if w.hosts[name].rival != "" && r.IntN(2) == 0 {
				h = w.hosts[name]
			}
		}
		switch {
		case h == nil:
		case h.rival == "":
			id := pick(r, rivals)
			w.story("fleet %s comes to cluster %s", id, h.name)
			w.set(h, func() { h.rival, h.granted = id, false })
		case r.IntN(3) > 0 && w.books.foreign[h.name]:
			h.granted = true
			w.ask("adopt", (*reconciler.Reconciler).AdoptFleet, reconciler.Order{Subject: h.rival, Cluster: h.name}, func(string) {})
		default:
			w.story("fleet %s leaves cluster %s", h.rival, h.name)
			w.set(h, func() { h.rival = "" })
		}
	})
}

// SetFleet is called by the loop.
func (a *agent) SetFleet(_ ledger.Fleet, adopted []ledger.Adoption) {
	a.d.hold()
	a.d.w.mu.Lock()
	defer a.d.w.mu.Unlock()
	if a.d.dead {
		return
	}
	was := a.foreign()
	a.adopted = adopted
	if was && !a.foreign() {
		a.after(a.pace, func() {
			if a.connected && a.healthy {
				a.introduce()
				a.work()
			}
		})
	}
}

// foreign reports whether another fleet holds the host.
func (a *agent) foreign() bool {
	return a.rival != "" && !slices.ContainsFunc(a.adopted, func(x ledger.Adoption) bool { return x.ID == a.rival })
}

// introduce reports everything that can be observed on a host.
func (a *agent) introduce() {
	a.shown = a.rival
	o := ledger.ClusterSeen{
		Cluster: a.name, At: a.d.w.now(), Healthy: true, UID: "uid-" + a.name,
		Properties: map[string]string{}, Namespaces: []string{}, Holds: []ledger.Held{}, Owners: []ledger.Owner{},
	}
	for _, key := range a.keys() {
		o.Holds = append(o.Holds, ledger.Held{Placement: key, Revision: a.holds[key].revision, Abandon: a.holds[key].abandon})
	}
	if len(o.Holds) > 0 {
		o.Owners = append(o.Owners, ledger.Owner{ID: ourFleet.ID, Source: ourFleet.Source})
	}
	if a.rival != "" {
		o.Owners = append(o.Owners, ledger.Owner{ID: a.rival, Source: "https://git.example/other"})
	}
	a.say(o)
}

// standBack does what remains to be done while another fleet holds the host.
func (a *agent) standBack() {
	if a.left != nil {
		a.after(a.pace, a.depart)
	}
}

// inherit writes our ID into the inventories of an adopted fleet.
func (a *agent) inherit() {
	if a.rival != "" {
		a.d.w.story("cluster %s is ours, and was of fleet %s", a.name, a.rival)
		a.rival = ""
		a.introduce()
	}
}

// hearOwners records the fleets that a cluster reports.
func (m *memory) hearOwners(o ledger.ClusterSeen) {
	if o.Owners == nil {
		return
	}
	rival := ""
	for _, owner := range o.Owners {
		if owner.ID != ourFleet.ID {
			rival = owner.ID
		}
	}
	if m.adopted[o.Cluster] != rival {
		delete(m.adopted, o.Cluster)
	}
	m.foreign[o.Cluster] = rival != "" && m.adopted[o.Cluster] != rival
}

// without are books that nothing was decided by yet, less what was found on a cluster:
// what is ours there is taken up once it is known whose the cluster is.
func (b *books) without(cluster string) *books {
	out := b.copy()
	for key, page := range out.pages {
		delete(page, cluster)
		if len(page) == 0 {
			delete(out.pages, key)
			delete(out.found, key)
		}
	}
	return out
}

// hearAdoptions records the adoptions in the ledger.
func (w *world) hearAdoptions(l *ledger.Ledger) {
	m := w.memory()
	for name, foreign := range m.foreign {
		h := w.hosts[name]
		if foreign && h.granted && slices.ContainsFunc(l.Adopted(name), func(x ledger.Adoption) bool { return x.ID == h.rival }) {
			m.foreign[name], m.adopted[name] = false, h.rival
		}
	}
}

// checkForeign checks every write to a host.
func (w *world) checkForeign(a *agent, key api.PlacementKey, id api.ID) {
	if a.rival != "" && !a.granted {
		w.breaks(lawForeign, "%s writes %s for %s, and fleet %s holds it", a.name, title(id), key, a.rival)
	}
}

// reachable reports whether a cluster was healthy in its last report, and is not held by another
// fleet.
func (b *books) reachable(cluster string) bool { return b.answers[cluster] && !b.foreign[cluster] }

// concede removes all other fleets.
func (h *host) concede() { h.rival, h.granted = "", false }
