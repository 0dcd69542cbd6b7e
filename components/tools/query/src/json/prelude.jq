# What jq has and the libraries have not.
def date: todate;
def toarray: if isarray then . else [.] end;
def trimstr($x): ltrimstr($x) | rtrimstr($x);
def ascii: [.] | implode;
def IN(src): . as $x | any(src; . == $x);
def IN(src; s): any(src; IN(s));
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def @csv:
  if isarray then . else error("only an array can be a row of CSV") end
  | map(
      if . == null then ""
      elif isstring then "\"" + gsub("\""; "\"\"") + "\""
      elif isarray or isobject then error("a cell of CSV is no array and no object")
      else tostring end)
  | join(",");
def @tsv:
  if isarray then . else error("only an array can be a row of TSV") end
  | map(
      if . == null then ""
      elif isstring then gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r")
      elif isarray or isobject then error("a cell of TSV is no array and no object")
      else tostring end)
  | join("\t");
