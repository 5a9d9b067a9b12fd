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
{{ template "words" regexReplaceAll (printf "^%s (is|are) " .Name) .Doc "" }}

{{ else }}
The fields that this project adds:
{{ end }}
{{- with $fields }}
{{ range . -}}
- `{{ .Name }}` ({{ template "link" markdownRenderType .Type }}{{ if has "Required: {}" .Validation }}, required{{ end }}): {{ template "field" . }}
{{ end }}
{{- end }}
{{- with .EnumValues }}
{{ range . -}}
- `{{ .Name }}`: {{ template "line" regexReplaceAll "^[A-Z]\\w+ (means that |is )?" .Doc "" }}
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

{{- /* The comment of a field, without its name and "is" or "are", if it begins so. */ -}}
{{- define "field" -}}
{{- $name := printf "^%s (is|are) " .Name -}}
{{- if regexMatch $name .Doc -}}
{{ template "line" regexReplaceAll $name .Doc "" }}
{{- else -}}
{{ template "text" .Doc }}
{{- end -}}
{{- end -}}

{{- define "line" -}}
{{- if regexMatch "^[a-z]+[ :]" . -}}
{{ template "text" printf "%s%s" (substr 0 1 . | upper) (substr 1 -1 .) }}
{{- else -}}
{{ template "text" . }}
{{- end -}}
{{- end -}}

{{- /* What is left of the comment of a type, which may have several lines. */ -}}
{{- define "words" -}}
{{ substr 0 1 . | upper }}{{ substr 1 -1 . }}
{{- end -}}

{{- /* A comment on one line, without the line breaks that belong in a table. */ -}}
{{- define "text" -}}
{{ regexReplaceAll "(<br />)+" (markdownRenderFieldDoc .) " " | trim }}
{{- end -}}
