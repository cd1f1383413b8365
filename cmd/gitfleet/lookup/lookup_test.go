package lookup

import "testing"

// A partial name is enough if it is unambiguous. For an unknown name, the error suggests an
// existing one.
func TestPlacement(t *testing.T) {
	known := []string{"crp/web", "crp/shop", "rp/team/db", "rp/blue/db", "rp/team/cache", "rp/team/shop"}
	tests := map[string]string{
		"web": "crp/web", "crp/web": "crp/web", "CRP/web": "crp/web", "clusterresourceplacement.placement.kubernetes-fleet.io/web": "crp/web",
		"cache": "rp/team/cache", "rp/cache": "rp/team/cache", "team/cache": "rp/team/cache", "rp/team/cache": "rp/team/cache",
		"rp/shop": "rp/team/shop", "crp/shop": "crp/shop", "team/db": "rp/team/db",
		"shop":     "! shop can be crp/shop or rp/team/shop: write one of them",
		"db":       "! db can be rp/team/db or rp/blue/db: write one of them",
		"cahce":    "! there is no placement cahce; did you mean rp/team/cache?",
		"crp/wbe":  "! there is no placement crp/wbe; did you mean crp/web?",
		"team/web": "! there is no placement team/web; there are crp/web, crp/shop, rp/team/db, rp/blue/db, rp/team/cache, rp/team/shop",
	}
	for text, want := range tests {
		got, err := Placement(text, known)
		if err != nil {
			got = "! " + err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
