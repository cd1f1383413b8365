package monitoring

import (
	"encoding/json"
	"fmt"
	"slices"
)

// schemaVersion is that of the JSON which Grafana 12 writes itself.
const schemaVersion = 41

type object = map[string]any

// source is the data source that the page's variable names.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// render writes a page as Grafana imports it.
func (d *dashboard) render() (string, error) {
	panels, y := []object{}, 0
	for _, r := range d.rows {
		panels = append(panels, object{"type": "row", "id": len(panels) + 1, "title": r.title, "collapsed": false, "panels": []object{}, "gridPos": place(0, y, 24, 1)})
		y++
		x := 0
		height := 0
		for _, p := range r.panels {
			w, h := 12, 8
			if p.kind == stat {
				w, h = 4, 4
			}
			if x+w > 24 || height != 0 && height != h {
				x, y = 0, y+height
			}
			panels = append(panels, p.render(len(panels)+1, place(x, y, w, h)))
			x, height = x+w, h
		}
		y += height
	}
	page := object{
		"uid": d.uid, "title": d.title, "description": d.description, "tags": []string{"gitfleet"},
		"schemaVersion": schemaVersion, "version": 1, "editable": true, "graphTooltip": 1, "refresh": "30s",
		"time": object{"from": "now-6h", "to": "now"}, "timezone": "", "panels": panels,
		"templating": object{"list": d.variables()}, "links": d.links(), "annotations": object{"list": []object{}},
	}
	text, err := json.MarshalIndent(page, "", "  ")
	return string(text) + "\n", err
}

func place(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

func (d *dashboard) variables() []object {
	all := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0}}
	all = append(all, variable("fleet", "gitfleet_build_info"))
	if d.variable != "" {
		all = append(all, variable(d.variable, d.values+`{fleet="$fleet"}`))
	}
	return all
}

// variable is a variable with the values of the label of its name.
func variable(name, series string) object {
	values := fmt.Sprintf("label_values(%s, %s)", series, name)
	return object{
		"name": name, "label": name, "type": "query", "datasource": source, "refresh": 2, "sort": 1, "hide": 0,
		"definition": values, "query": object{"query": values, "refId": "values"},
	}
}

// links lead to the other pages, and keep the time that is looked at.
func (d *dashboard) links() []object {
	return []object{{
		"type": "dashboards", "title": "gitfleet", "tags": []string{"gitfleet"}, "asDropdown": false,
		"includeVars": true, "keepTime": true, "targetBlank": false, "icon": "external link", "tooltip": "", "url": "",
	}}
}

func (p *panel) render(id int, at object) object {
	var targets []object
	for i, q := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.text(), "legendFormat": q.legend, "editorMode": "code", "range": p.kind != stat, "instant": p.kind == stat}
		targets = append(targets, target)
	}
	options := object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	if p.kind == stat {
		options = object{"textMode": "auto", "colorMode": "none", "graphMode": "none", "reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}}
		if p.unit == "none" && len(p.queries) == 1 && p.queries[0].namesItself() {
			options["textMode"] = "name"
		}
	}
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": p.about, "datasource": source, "gridPos": at, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}}, "options": options,
	}
}

// namesItself reports whether the panel shows a label of the series instead of its value,
// which is always 1.
func (q query) namesItself() bool {
	return slices.Contains([]string{"{{commit}}", "{{version}}", "{{run}} {{stage}} {{reason}}"}, q.legend)
}
