#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>

#include "etc_core/base/json.h"
#include "tasks/analyze/document.h"

namespace etc::analyze {

namespace {

// Format of an entry:
//   2 or 3 bytes   the key, low byte first; the highest bit is its key set; all bits set: no key
//   1 byte         the square root of the probability, in units of 1/255
//   1 byte         the layer's own score: 128 + score in units of 1/127 of the layer's largest
//   1 byte         with running scores, the logit in the same form

std::string base64(const std::vector<std::uint8_t>& bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) { return at < bytes.size() ? std::uint32_t{bytes[at]} : 0u; };
    const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    text += kLetters[three >> 18];
    text += kLetters[three >> 12 & 63];
    text += i + 1 < bytes.size() ? kLetters[three >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kLetters[three & 63] : '=';
  }
  return text;
}

// The largest score or logit of a layer, the scale of its bytes.
float largest_of(const DocumentAttention::Layer& layer) {
  float largest = 1e-6f;
  for (const sparse::TopKey& key : layer.keys) {
    if (key.key >= 0) largest = std::max({largest, std::abs(key.own), std::abs(key.logit)});
  }
  return largest;
}

std::string packed(const DocumentAttention& document, const DocumentAttention::Layer& layer, float largest) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(layer.keys.size() * static_cast<std::size_t>(document.entry_bytes()));
  const auto part = [&](float value) { return static_cast<std::uint8_t>(128 + std::lround(127 * value / largest)); };
  const int key_bytes = document.key_bytes();
  for (const sparse::TopKey& key : layer.keys) {
    const std::uint32_t set = key.set == 1 ? 1u << (8 * key_bytes - 1) : 0u;
    const std::uint32_t number = key.key < 0 ? 0xffffffu : static_cast<std::uint32_t>(key.key) | set;
    for (int i = 0; i < key_bytes; ++i) bytes.push_back(static_cast<std::uint8_t>(number >> 8 * i));
    bytes.push_back(key.key < 0 ? 0 : static_cast<std::uint8_t>(std::lround(255 * std::sqrt(key.probability))));
    bytes.push_back(key.key < 0 ? 0 : part(key.own));
    if (document.carries) bytes.push_back(key.key < 0 ? 0 : part(key.logit));
  }
  return base64(bytes);
}

// JSON for a script element, escaped so that no "</script>" or comment can begin in it.
std::string in_script(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  return text;
}

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Attention</title>
<style>
body{font:14px sans-serif;margin:0;color:#222}
header{position:sticky;top:0;background:#fff;border-bottom:1px solid #ccc;padding:8px 12px;z-index:1}
header h1{font-size:16px;margin:0 0 6px}
label{margin-right:14px}
main{display:flex;gap:16px;padding:10px 12px}
#text{flex:2;line-height:1.7}
#side{flex:1;min-width:330px;position:sticky;top:80px;align-self:flex-start;max-height:85vh;overflow:auto}
.t{padding:1px 2px;border-radius:3px;cursor:pointer;white-space:nowrap;scroll-margin:120px 0}
.t.on{padding-left:0}
.t:hover{outline:1px solid #888}
.q{outline:2px solid #111;font-weight:bold}
#globals{border:1px solid #ddd;padding:4px;margin-bottom:10px;max-height:130px;overflow:auto}
table{border-collapse:collapse;font-size:13px}
td,th{padding:2px 8px;text-align:right;border-bottom:1px solid #eee}
td:first-child,th:first-child{text-align:left}
h2{font-size:13px;margin:10px 0 2px}
@media(max-width:800px){
header{position:static}
label{white-space:nowrap;display:inline-block;margin-bottom:4px}
main{flex-direction:column}
#side{order:-1;min-width:0;width:100%;box-sizing:border-box;top:0;max-height:40vh;background:#fff;z-index:1;
border-bottom:1px solid #ccc}
td,th{padding:2px 4px}
}
</style></head><body>
<header><h1 id="title"></h1>
<label>layer <select id="layer"></select></label>
<label>head <select id="head"></select></label>
<label>token <input id="token" type="number" min="0" style="width:6em"></label>
<label>global token <select id="global"></select></label>
<span id="about"></span></header>
<main><div id="text"><h2 id="gh">global tokens</h2><div id="globals"></div><h2>text</h2><div id="longs"></div></div>
<div id="side"><h2 id="who"></h2><div id="tables"></div></div></main>
<script>
const D=)";

constexpr const char* kScript = R"(;
const el=id=>document.getElementById(id);
const bytes=D.layers.map(()=>null);
function entries(n){
  if(!bytes[n]){const s=atob(D.layers[n].keys),b=new Uint8Array(s.length);
    for(let i=0;i<s.length;++i)b[i]=s.charCodeAt(i);bytes[n]=b;}
  return bytes[n];
}
let state={layer:0,head:0,global:false,token:0};
function operator(){
  return D.layers.findIndex(l=>l.layer===state.layer&&(l.op==='global')===state.global);
}
function keysOf(){
  const n=operator();if(n<0)return [];
  const l=D.layers[n],b=entries(n),list=[];
  const size=D.keyBytes+(D.carries?3:2),bits=8*D.keyBytes,top=2**(bits-1);
  for(let k=0;k<D.top;++k){
    let at=((state.head*l.queries+state.token)*D.top+k)*size,number=0;
    for(let i=0;i<D.keyBytes;++i)number+=b[at++]*2**(8*i);
    if(number===2**bits-1)continue;
    const set=number>=top?1:0,own=(b[at+1]-128)/127*l.largest;
    list.push({global:l.globalKeys[set],type:l.types[set],key:number-set*top,p:(b[at]/255)**2,own,
      logit:D.carries?(b[at+2]-128)/127*l.largest:own});
  }
  return list;
}
const colours={l2l:'31,95,168',self:'31,95,168',l2g:'194,59,34',g2g:'138,90,181',g2l:'46,139,87'};
// Pieces of a word stand together: "##" goes on with the word before, of SentencePiece what has no mark does.
function spans(box,tokens,global){
  const marked=tokens.some(t=>t.startsWith('\u2581'));
  tokens.forEach((t,i)=>{
    const on=i>0&&!global&&(t.startsWith('##')&&t.length>2||marked&&!t.startsWith('\u2581')&&!/^[\[<].*[\]>]$/.test(t));
    if(i>0&&!on)box.appendChild(document.createTextNode(' '));
    const s=document.createElement('span');s.className=on?'t on':'t';s.title=(global?'global ':'token ')+i+': '+t;
    s.textContent=global?i+' '+t:t.replace(on&&!marked?/^##/:/^\u2581(?=.)/,'');
    s.onclick=()=>choose(global,i);box.appendChild(s);
  });
}
const fixed=x=>x.toFixed(2).replace(/^-0\.00$/,'0.00');
function choose(global,token,place){state.global=global;state.token=token;draw();show(place||'nearest');}
function show(place){const s=el(state.global?'globals':'longs').getElementsByClassName('t')[state.token];
  if(s)s.scrollIntoView({block:place});}
function draw(){
  const boxes={false:el('longs').getElementsByClassName('t'),true:el('globals').getElementsByClassName('t')};
  for(const box of [boxes[false],boxes[true]])for(const s of box){s.style.background='';s.classList.remove('q');}
  const own=boxes[state.global][state.token];if(own)own.classList.add('q');
  el('layer').value=state.layer;el('head').value=state.head;
  el('token').value=state.global?'':state.token;el('global').value=state.global?state.token:'';
  const list=keysOf(),largest=Math.max(1e-9,...list.map(k=>k.p));
  const names={};
  for(const k of list){
    const s=boxes[k.global][k.key];
    if(s)s.style.background='rgba('+(colours[k.type]||'120,120,120')+','+(0.1+0.5*k.p/largest).toFixed(3)+')';
    (names[k.type]=names[k.type]||[]).push(k);
  }
  el('who').textContent='layer '+state.layer+', head '+state.head+': '+(state.global?'global ':'token ')+state.token+
    ' "'+(state.global?D.globals:D.longs)[state.token]+'" attends to';
  const out=el('tables');out.textContent='';
  for(const type in names){
    const h=document.createElement('h2');
    h.textContent=type+': '+(100*names[type].reduce((a,k)=>a+k.p,0)).toFixed(1)+' % on the keys shown';
    h.style.color='rgb('+(colours[type]||'120,120,120')+')';out.appendChild(h);
    const t=document.createElement('table');
    const row=(cells,tag)=>{const r=document.createElement('tr');
      for(const c of cells){const d=document.createElement(tag);d.textContent=c;r.appendChild(d);}t.appendChild(r);return r;};
    row(D.carries?['key','number','p','own score','with carry']:['key','number','p','score'],'th');
    for(const k of names[type]){
      const r=row([(k.global?D.globals:D.longs)[k.key],k.key,k.p.toFixed(3),fixed(k.own)]
        .concat(D.carries?[fixed(k.logit)]:[]),'td');
      r.style.cursor='pointer';r.onclick=()=>choose(k.global,k.key,'center');
    }
    out.appendChild(t);
  }
}
const layers=[...new Set(D.layers.map(l=>l.layer))];
el('title').textContent=D.title;
el('about').textContent='task '+D.task+', residual scores '+D.residual+', the '+D.top+' largest keys of each query'+(D.layersOf>layers.length?', '+layers.length+' of '+D.layersOf+' layers':'');
for(const l of layers)el('layer').add(new Option(l,l));
for(let h=0;h<D.heads;++h)el('head').add(new Option(h,h));
el('global').add(new Option('-',''));
D.globals.forEach((t,i)=>el('global').add(new Option(i+' '+t,i)));
if(!D.globals.length){el('gh').style.display='none';el('globals').style.display='none';}
el('token').max=D.longs.length-1;
el('layer').onchange=e=>{state.layer=+e.target.value;draw();};
el('head').onchange=e=>{state.head=+e.target.value;draw();};
el('token').onchange=e=>{const n=+e.target.value;if(n>=0&&n<D.longs.length)choose(false,n,'center');};
el('global').onchange=e=>{if(e.target.value!=='')choose(true,+e.target.value);};
spans(el('globals'),D.globals,true);spans(el('longs'),D.longs,false);
const asked=new URLSearchParams(location.hash.slice(1));
// What a link asks for and the document does not have is its first.
const within=(name,count)=>{const n=+(asked.get(name)||0);return Number.isInteger(n)&&n>=0&&n<count?n:0;};
const global=asked.has('global')&&D.globals.length>0;
state={layer:asked.has('layer')&&layers.includes(+asked.get('layer'))?+asked.get('layer'):layers[layers.length-1],
  head:within('head',D.heads),global,
  token:global?within('global',D.globals.length):within('token',D.longs.length)};
draw();
if(asked.has('token')||global)show('center');
</script></body></html>
)";

}  // namespace

std::string document_page(const DocumentAttention& document) {
  Json layers = Json::array();
  for (const DocumentAttention::Layer& layer : document.layers) {
    const float largest = largest_of(layer);
    const Json types = layer.op == "self"   ? Json{"self", "self"}
                       : layer.op == "long" ? Json{"l2l", "l2g"}
                                            : Json{"g2g", "g2l"};
    layers.push_back({{"op", layer.op},
                      {"layer", layer.layer},
                      {"queries", layer.queries},
                      {"types", types},
                      {"globalKeys", {layer.keys_are_global[0], layer.keys_are_global[1]}},
                      {"largest", largest},
                      {"keys", packed(document, layer, largest)}});
  }
  const Json data = {{"title", document.title},
                     {"task", document.task},
                     {"residual", document.residual},
                     {"longs", document.long_tokens},
                     {"globals", document.global_tokens},
                     {"heads", document.heads},
                     {"top", document.top},
                     {"keyBytes", document.key_bytes()},
                     {"layersOf", document.layers_of_model},
                     {"carries", document.carries},
                     {"layers", layers}};
  return kHead + in_script(data) + kScript;
}

bool is_document_page(const std::filesystem::path& file) {
  const std::string_view head = std::string_view(kHead).substr(0, std::string_view(kHead).find("</title>"));
  std::string begin(head.size(), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  return begin.empty() || begin == head;
}

}  // namespace etc::analyze
