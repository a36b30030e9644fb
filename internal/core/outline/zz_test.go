package outline_test
import ("testing";"time";"fmt";"os";"strings";"goclaw/internal/core/outline")
func TestZZ(t *testing.T){ b,_:=os.ReadFile("/tmp/slicer-list"); for _,f:=range strings.Fields(string(b)) { s,err:=os.ReadFile(f); if err!=nil {continue}; at:=time.Now(); o,ok:=outline.File(f,string(s)); fmt.Println(f,len(s),len(o),strings.Count(o,"\n"),ok,time.Since(at)); if strings.Contains(f,"argparse")||strings.Contains(f,"entity.php") {fmt.Println(o[:1500])}}}
