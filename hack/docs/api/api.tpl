{{- /*
The template of docs/reference/api.md for crd-ref-docs. The value "types" is a regular expression.
A type whose name matches is shown in full. Of any other type, only fields of such a type are shown:
those that our patches add to a type of upstream.
*/ -}}

{{- define "gvList" -}}
{{- range . }}
## {{ .GroupVersionString }}
{{ range .SortedTypes }}{{ template "type" . }}{{ end }}
{{- end }}
{{- end -}}

{{- define "type" -}}
{{- $types := markdownTemplateValue "types" -}}
{{- $ours := regexMatch (printf "^(%s)$" $types) .Name -}}
{{- $fields := list -}}
{{- range .Members -}}
  {{- if or $ours (regexMatch (printf "\\[(%s)\\]" $types) (markdownRenderType .Type)) -}}
    {{- $fields = append $fields . -}}
  {{- end -}}
{{- end -}}
{{- if or $ours $fields }}
### {{ .Name }}
{{ if $ours }}
{{ .Doc }}
{{ with .SortedReferences }}
Used by:{{ range $i, $_ := . }}{{ if $i }},{{ end }} {{ template "link" markdownRenderTypeLink . }}{{ end }}.
{{ end }}
{{- else }}
The fields that this project adds:
{{ end }}
{{- with $fields }}
| field | type | description |
|---|---|---|
{{ range . -}}
| `{{ .Name }}` | {{ template "link" markdownRenderType .Type }} | {{ if has "Required: {}" .Validation }}Required. {{ end }}{{ template "text" .Doc }} |
{{ end }}
{{- end }}
{{- with .EnumValues }}
| value | description |
|---|---|
{{ range . -}}
| `{{ .Name }}` | {{ template "text" regexReplaceAll "^[A-Z]\\w+ " .Doc "" }} |
{{ end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* A link to a type in this document; other types are named only. Bytes are written in base64. */ -}}
{{- define "link" -}}
{{- $ours := regexReplaceAll "\\(https[^)]*#([a-z]+)-(v1alpha1-coordination)\\)" . "(#$1)" -}}
{{- $ours = regexReplaceAll (printf "\\[(%s)\\]\\(https[^)]*#([a-z]+)-v1-core\\)" (markdownTemplateValue "core")) $ours "[$1](#$2)" -}}
{{- $ours = regexReplaceAll "^integer array$" $ours "string (base64)" -}}
{{- regexReplaceAll "\\[(\\w+)\\]\\(https[^)]*\\)" $ours "$1" -}}
{{- end -}}

{{- /* A comment on one line, as tables require it. */ -}}
{{- define "text" -}}
{{ regexReplaceAll "(<br />)+" (markdownRenderFieldDoc .) " " | trim }}
{{- end -}}
