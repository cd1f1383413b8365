package check

import (
	"cmp"
	"io"
	"net/url"
	"slices"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
)

// writeSARIF writes findings as code scanning services read them, in SARIF 2.1.0.
func writeSARIF(w io.Writer, all []finding) error {
	type object map[string]any
	described := []object{}
	for _, r := range rules {
		described = append(described, object{"id": r.id, "name": r.name, "shortDescription": object{"text": r.text}})
	}
	driver := object{"name": "gitfleet", "informationUri": "https://github.com/gitfleet/gitfleet", "rules": described}
	if version.Release != "" {
		driver["version"] = version.Release
	}
	results := []object{}
	for _, f := range all {
		// A finding about the whole repository is located at the top directory, since services drop
		// findings without a location.
		location := object{"artifactLocation": object{"uri": (&url.URL{Path: cmp.Or(f.Path, ".")}).String(), "uriBaseId": "%SRCROOT%"}}
		if f.Line > 0 {
			location["region"] = object{"startLine": f.Line}
		}
		results = append(results, object{
			"ruleId": f.rule.id, "ruleIndex": slices.Index(rules, f.rule), "level": f.Severity,
			"message": object{"text": f.message()}, "locations": []object{{"physicalLocation": location}},
		})
	}
	return output.WriteJSON(w, object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}},
	})
}
