"""PDFs made for tests."""


def make_pdf(path, pages, title=""):
    """A PDF with the lines of each page, whose cells are separated by tabs; empty: a page without text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        cells = "({}) Tj {} 0 Td".format
        lines = " T* ".join(
            cells(line.replace("\t", ") Tj 120 0 Td ("), -120 * line.count("\t")) for line in text.split("\n")
        )
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {lines} ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {font} /Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects.append(f"<< /Title ({title}) >>")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
    end += f"<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    path.write_bytes((out + end).encode("ascii"))
