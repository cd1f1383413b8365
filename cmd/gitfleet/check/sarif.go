package check

import (
	"encoding/json"
	"io"
	"net/url"
	"slices"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
)

// The part of SARIF 2.1.0 that a list of findings needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Version        string      `json:"version,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		Name             string    `json:"name"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

// writeSARIF writes findings as code scanning services read them.
func writeSARIF(w io.Writer, all []finding) error {
	driver := sarifDriver{Name: "gitfleet", InformationURI: "https://github.com/gitfleet/gitfleet", Version: version.Release}
	for _, r := range rules {
		driver.Rules = append(driver.Rules, sarifRule{r.id, r.name, sarifText{r.text}})
	}
	results := []sarifResult{}
	for _, f := range all {
		results = append(results, sarifResult{
			RuleID: f.rule.id, RuleIndex: slices.Index(rules, f.rule), Level: string(f.Severity),
			Message: sarifText{f.message()}, Locations: []sarifLocation{{f.sarif()}},
		})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "utf16CodeUnits", Results: results}},
	})
}

// sarif returns the location of a finding. A finding about the whole repository is located at
// the top directory, since services drop findings without a location.
func (f finding) sarif() sarifPhysical {
	p := sarifPhysical{Artifact: sarifArtifact{URI: ".", URIBaseID: "%SRCROOT%"}}
	if f.Path != "" {
		p.Artifact.URI = (&url.URL{Path: f.Path}).String()
	}
	if f.Line > 0 {
		p.Region = &sarifRegion{f.Line}
	}
	return p
}
